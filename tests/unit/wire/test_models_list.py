import pytest

from lorapick.wire.models_list import ModelsList, ModelsListError, parse, paths


def test_base_models_and_registered_adapters() -> None:
    body = b"""{"object":"list","data":[
      {"id":"base","object":"model","root":"/m","parent":null,"max_model_len":1024,"permission":[{}]},
      {"id":"ad0","object":"model","root":"/a/ad0","parent":"base","max_model_len":null},
      {"id":"ad1","parent":"base"}, {"id":"ad0","parent":"base"}]}"""
    assert parse(body) == ModelsList(base_models=("base",), registered=("ad0", "ad1"))


def test_a_base_model_without_the_key_parent() -> None:
    assert parse(b'{"data":[{"id":"m"}]}') == ModelsList(base_models=("m",), registered=())


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"data":[{"id":7}]}', b'{"data":[{"name":"x"}]}', b"\xff"])
def test_anything_else_is_refused(body: bytes) -> None:
    with pytest.raises(ModelsListError, match="not a list of models: "):
        parse(body)


def test_a_list_that_would_take_the_pickers_time_is_refused() -> None:
    cards = ",".join(f'{{"id":"a{at}","parent":"base"}}' for at in range(20_000))
    with pytest.raises(ModelsListError, match="a list of 20000 models; the limit is 16384 for one pod"):
        parse(f'{{"data":[{cards}]}}'.encode())


def test_paths_of_adapters_where_the_engine_gives_them() -> None:
    body = b"""{"data":[{"id":"base","root":"/m"},{"id":"a","root":"/a","parent":"base"},
      {"id":"b","parent":"base"},{"id":"c","root":"","parent":"base"}]}"""
    assert paths(body) == {"a": "/a", "b": None, "c": None}
    with pytest.raises(ModelsListError, match="not a list of models: "):
        paths(b"{}")
