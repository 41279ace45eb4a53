"""Where the server is, who logs in, and with which session."""

import subprocess

import pytest
from mysql_support import run, target_of

from servers import MariaDb, find_program
from tidemark.config import load
from tidemark.sinks.mysql import connection as module
from tidemark.sinks.mysql.connection import Connection, ServerSaid, Target
from tidemark.sinks.mysql.errors import BadConnectionSetting, DriverMissing, NotTiDb
from tidemark.sinks.mysql.retrying import Session
from tidemark.sinks.mysql.writer import Limits, Writer


def target(uri, environ=None, changefeed=None) -> Target:
    return Target.from_settings(load(changefeed, uri), environ or {})


def test_defaults_are_those_of_ticdc():
    made = target("tidb://db.example/")
    assert (made.host, made.port, made.user, made.password, made.tls, made.time_zone) == (
        "db.example",
        4000,
        "root",
        "",
        False,
        "+00:00",
    )


def test_all_parts_of_the_uri():
    made = target(
        "mysql://us%40er@[::1]:3307/?time-zone=Asia/Shanghai&ssl-ca=/ca&ssl-cert=/c&ssl-key=/k&timeout=3s&read-timeout=5s&write-timeout=7s"
    )
    assert (made.host, made.port, made.user, made.time_zone) == ("::1", 3307, "us@er", "Asia/Shanghai")
    assert (made.tls, made.ssl_ca, made.ssl_cert, made.ssl_key) == (True, "/ca", "/c", "/k")
    assert (made.connect_timeout, made.read_timeout, made.write_timeout) == (3, 5, 7)


def test_tls_files_may_stand_in_the_changefeed_file():
    assert target("mysql://h/", changefeed={"sink": {"mysql-config": {"ssl-ca": "/ca"}}}).ssl_ca == "/ca"


@pytest.mark.parametrize(
    ("uri", "environ", "password"),
    [
        ("mysql://u@h/?password-env=MINE", {"MINE": "a", "TIDEMARK_SINK_PASSWORD": "b"}, "a"),
        ("mysql://u:c@h/?password-env=MINE", {"MINE": "a"}, "a"),
        ("mysql://u:c%40d@h/", {"TIDEMARK_SINK_PASSWORD": "b"}, "c@d"),
        ("mysql://u@h/", {"TIDEMARK_SINK_PASSWORD": "b", "MYSQL_PWD": "m"}, "b"),
        ("mysql://u@h/", {"MYSQL_PWD": "m"}, "m"),
        ("mysql://u@h/", {}, ""),
    ],
)
def test_where_the_password_comes_from(uri, environ, password):
    assert target(uri, environ).password == password


def test_a_password_variable_that_is_not_set():
    with pytest.raises(BadConnectionSetting, match="MINE, which is not set"):
        target("mysql://u@h/?password-env=MINE")


def test_passwords_and_keys_are_not_printed():
    made = target("mysql://u:s3cret@h/?ssl-ca=/ca&ssl-cert=/c&ssl-key=/very/private")
    assert "s3cret" not in repr(made) + made.shown
    assert "private" not in repr(made)


def test_other_sinks_are_refused():
    with pytest.raises(BadConnectionSetting, match="not a database"):
        target("file:///tmp/x?protocol=csv")


def test_a_certificate_without_key_is_refused():
    with pytest.raises(BadConnectionSetting, match="together"):
        target("mysql://h/?ssl-ca=/ca&ssl-cert=/c")


def test_tls_files_that_do_not_exist():
    made = Target(tls=True, ssl_ca="/nowhere/ca.pem")
    with pytest.raises(BadConnectionSetting, match="No such file"):
        module._tls_context(made)


def test_no_driver_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pymysql", None)
    with pytest.raises(DriverMissing, match=r"pip install '\.\[mysql\]'"):
        module.driver()


def test_the_session_is_strict_and_in_the_zone_of_the_changefeed(uri):
    session = Connection(target_of(uri, time_zone="+08:00"))
    [(mode, zone, checks, charset)] = session.query(
        "select @@sql_mode, @@time_zone, @@foreign_key_checks, @@character_set_client"
    )
    session.close()
    assert {"STRICT_TRANS_TABLES", "NO_AUTO_VALUE_ON_ZERO", "ALLOW_INVALID_DATES"} <= set(mode.split(","))
    assert not {"NO_ZERO_DATE", "NO_ZERO_IN_DATE", "NO_BACKSLASH_ESCAPES"} & set(mode.split(","))
    assert (zone, checks, charset) == ("+08:00", 0, "utf8mb4")


def test_a_server_error_keeps_its_code(session):
    with pytest.raises(ServerSaid) as found:
        session.query("select * from mysql.no_such_table")
    assert found.value.code == 1146


def test_a_closed_connection_counts_as_lost(uri):
    session = Connection(target_of(uri))
    session.close()
    with pytest.raises(ServerSaid) as found:
        session.query("select 1")
    assert found.value.code in (0, 2006, 2013)


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    """A server with a certificate for localhost, and a folder with its authority and another one."""
    folder = tmp_path_factory.mktemp("tls")
    openssl = find_program("openssl", "openssl")

    def make(*args):
        subprocess.run([openssl, *args], cwd=folder, check=True, capture_output=True)

    for name in ("ca", "other"):
        make(
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            f"/CN={name}",
            "-keyout",
            f"{name}.key",
            "-out",
            f"{name}.pem",
        )
    for name in ("server", "client"):
        make(
            "req",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            f"/CN={name}",
            "-keyout",
            f"{name}.key",
            "-out",
            f"{name}.csr",
        )
        (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
        make(
            "x509",
            "-req",
            "-days",
            "2",
            "-in",
            f"{name}.csr",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-extfile",
            "names",
            "-out",
            f"{name}.pem",
        )
    server = MariaDb(
        folder,
        *(
            f"--ssl-{what}={folder / file}"
            for what, file in (("ca", "ca.pem"), ("cert", "server.pem"), ("key", "server.key"))
        ),
    )
    server.start()
    yield server, folder
    server.stop()


def test_tls_with_certificate_authority_and_client_certificate(secure):
    server, folder = secure
    admin = Connection(target_of(server.uri))
    run(admin, "create user secure identified by 'pw' require x509")
    admin.close()
    files = f"ssl-ca={folder}/ca.pem&ssl-cert={folder}/client.pem&ssl-key={folder}/client.key"
    session = Connection(target(f"mysql+ssl://secure:pw@127.0.0.1:{server.port}/?{files}"))
    assert session.query("show status like 'Ssl_cipher'")[0][1]
    session.close()


def test_tls_without_authority_is_encrypted(secure):
    session = Connection(target(f"mysql+ssl://root@127.0.0.1:{secure[0].port}/"))
    assert session.query("show status like 'Ssl_cipher'")[0][1]
    session.close()


def test_a_server_that_another_authority_vouches_for_is_refused(secure):
    server, folder = secure
    with pytest.raises(BadConnectionSetting, match=r"TLS failed.*2026.*ssl-ca"):
        Writer(
            target(f"mysql://root@127.0.0.1:{server.port}/?ssl-ca={folder}/other.pem"), Limits(connections=1)
        )


def test_a_server_without_tls_is_refused_where_tls_is_asked_for(mariadb):
    with pytest.raises(BadConnectionSetting, match=r"TLS failed.*2026"):
        Writer(target(f"mysql+ssl://root@127.0.0.1:{mariadb.port}/"), Limits(connections=1))


def test_active_active_mode_takes_another_server_than_tidb_only_if_it_is_meant(mariadb):
    feed = {"enable-active-active": True, "bdr-mode": True}
    with pytest.raises(NotTiDb, match=r"MariaDB.*, not TiDB: .* add allow-non-tidb=true to the sink URI"):
        Session(target(mariadb.uri, changefeed=feed)).open()
    session = Session(target(f"{mariadb.uri}?allow-non-tidb=true", changefeed=feed))
    assert session.open().is_tidb is False
    session.close()
