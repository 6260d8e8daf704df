"""Changed files are taken without a restart; broken ones change nothing, and that is said."""

import asyncio
import datetime
import logging
import time

import pytest
import trustme
from tls_kit import NAMES, chain

from lorapick.live.processes import becomes_true
from lorapick.live.tls.certificates import TlsError
from lorapick.live.tls.families import TlsFamilies
from lorapick.live.tls.keeper import Keeper
from lorapick.model.tls import SurfaceTls, TlsSettings


def samples(keeper):
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in TlsFamilies(keeper).collect()
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def days(number):
    return datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=number)


def test_new_files_are_taken(issuer, caplog):
    caplog.set_level(logging.INFO)
    issuer.issue(until=days(10))
    keeper = issuer.keeper("extproc", "metrics")
    first = keeper.not_after
    keeper.look()
    assert (keeper.reloads, caplog.messages) == (0, [])
    issuer.issue(until=days(20))
    keeper.look()
    assert keeper.not_after - first == pytest.approx(10 * 86_400, abs=120)
    assert caplog.messages[0].startswith("new certificate for extproc, metrics, valid until 20")
    assert samples(keeper) == {
        ("lorapick_tls_not_after_seconds", "extproc"): keeper.not_after,
        ("lorapick_tls_not_after_seconds", "metrics"): keeper.not_after,
        ("lorapick_tls_reloads_total", "taken"): 1,
        ("lorapick_tls_reloads_total", "refused"): 0,
        ("lorapick_tls_files_broken",): 0,
    }


def test_half_written_files_are_given_time(issuer, caplog):
    made = issuer.issue()
    keeper = issuer.keeper("extproc")
    other = issuer.authority.issue_cert(*NAMES)
    issuer.write(chain(other), made.private_key_pem.bytes())
    keeper.look()
    assert (keeper.problem, keeper.failures, caplog.messages) == (None, 0, [])
    issuer.write(chain(other), other.private_key_pem.bytes())
    keeper.look()
    assert (keeper.reloads, keeper.problem) == (1, None)


def test_files_that_stay_broken_are_said_once_and_the_last_good_stay(issuer, caplog):
    made = issuer.issue()
    keeper = issuer.keeper("extproc")
    until = keeper.not_after
    issuer.write(chain(made), issuer.authority.issue_cert(*NAMES).private_key_pem.bytes())
    for _ in range(4):
        keeper.look()
    (told,) = caplog.messages
    assert "is not the key of" in told and "the certificate from before stays, which is valid until" in told
    assert (keeper.not_after, keeper.failures, keeper.reloads) == (until, 1, 0)
    assert samples(keeper)[("lorapick_tls_files_broken",)] == 1
    (issuer.folder / "tls.crt").unlink()
    for _ in range(3):
        keeper.look()
    assert keeper.failures == 2
    assert "No such file" in keeper.problem
    issuer.issue()
    keeper.look()
    assert (keeper.problem, keeper.reloads) == (None, 1)


def test_an_expired_one_is_no_improvement(issuer, caplog):
    issuer.issue()
    keeper = issuer.keeper("extproc")
    expired = issuer.authority.issue_cert(*NAMES, not_before=days(-20), not_after=days(-10))
    issuer.write(chain(expired), expired.private_key_pem.bytes())
    keeper.look()
    keeper.look()
    assert "is valid from" in keeper.problem
    assert keeper.not_after > time.time()


def test_at_the_start_an_expired_one_is_better_than_no_picker(issuer, caplog):
    expired = issuer.authority.issue_cert(*NAMES, not_before=days(-20), not_after=days(-10))
    issuer.write(chain(expired), expired.private_key_pem.bytes())
    keeper = issuer.keeper("extproc")
    assert caplog.messages[0].endswith("who checks it refuses us")
    assert keeper.not_after < time.time()


def test_broken_files_at_the_start_end_it(issuer):
    made = issuer.issue()
    issuer.write(chain(made), b"nothing")
    with pytest.raises(TlsError, match="no private key"):
        issuer.keeper("extproc")


def test_a_changed_client_ca_is_taken_too(issuer):
    issuer.issue()
    keeper = issuer.keeper("admin", client_ca=issuer.authority_file())
    before = keeper.http("admin").current
    issuer.authority_file(trustme.CA())
    keeper.look()
    assert keeper.http("admin").current is not before
    assert before.get_ca_certs() != keeper.http("admin").current.get_ca_certs()


def test_without_files_one_is_made(tmp_path):
    keeper = Keeper(TlsSettings(extproc=SurfaceTls()), beside=tmp_path, surfaces=("extproc",))
    assert keeper.not_after - time.time() == pytest.approx(3650 * 86_400, abs=60)
    keeper.look()
    assert (keeper.reloads, keeper.problem) == (0, None)


async def test_it_looks_by_itself(issuer):
    issuer.issue()
    keeper = issuer.keeper("metrics", reload_every=0.01)
    watching = asyncio.create_task(keeper.run())
    issuer.issue()

    async def taken():
        return keeper.reloads > 0

    assert await becomes_true(taken, within=10.0)
    watching.cancel()
