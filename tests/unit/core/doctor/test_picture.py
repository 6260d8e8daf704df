"""The picture: what follows from its fields, and that nothing needs to be known."""

from lorapick.core.doctor.picture import AlertPicture, Picture, PodPicture


def test_tokens_need_blocks_and_their_size():
    assert PodPicture(name="p", kv_blocks=10, block_tokens=16).kv_tokens == 160
    assert PodPicture(name="p", kv_blocks=10).kv_tokens is None
    assert PodPicture(name="p", block_tokens=16).kv_tokens is None


def test_pods_and_alerts_are_found_by_name():
    picture = Picture(pods=(PodPicture(name="p"),), alerts=(AlertPicture(name="convoy"),))
    assert picture.pod("p") is picture.pods[0]
    assert picture.alert("convoy") is picture.alerts[0]
    assert (Picture().pod("p"), Picture().alert("convoy"), Picture().pod_signals) == (None, None, ())
