"""The real client against the embedded registry behind HTTP."""

import datetime
import json
import logging
import ssl
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tidemark.registry.confluent import ConfluentRegistry
from tidemark.registry.embedded import EmbeddedRegistry
from tidemark.registry.errors import (
    IncompatibleSchema,
    InvalidLevel,
    InvalidSchema,
    RegistryError,
    RegistryUnreachable,
    SchemaNotFound,
    SubjectNotFound,
    Unauthorized,
    VersionNotFound,
)
from tidemark.registry.open import open_url
from tidemark.registry.server import RegistryServer

pytest.importorskip("confluent_kafka.schema_registry")


def schema(*names, **defaults):
    fields = [{"name": name, "type": "int"} for name in names]
    fields += [{"name": name, "type": "int", "default": value} for name, value in defaults.items()]
    return json.dumps({"type": "record", "name": "r", "fields": fields})


@pytest.fixture
def server(tmp_path):
    with RegistryServer(EmbeddedRegistry(tmp_path)) as server:
        yield server


@pytest.fixture
def registry(server):
    client = ConfluentRegistry(server.url)
    yield client
    client.close()


def test_a_schema_is_registered_and_found(registry):
    assert registry.register("a.b/c-value", schema("x")) == 1
    assert registry.register("a.b/c-value", schema("x")) == 1
    assert registry.register("a.b/c-value", schema("x", y=1)) == 2
    assert registry.subjects() == ["a.b/c-value"]
    assert registry.versions("a.b/c-value") == [1, 2]
    assert json.loads(registry.schema(2)) == json.loads(schema("x", y=1))
    assert registry.lookup("a.b/c-value", schema("x")).version == 1
    assert registry.version("a.b/c-value").id == 2


def test_an_id_is_asked_for_once(registry, tmp_path):
    registry.register("a", schema("x"))
    (tmp_path / "schemas.json").unlink()
    assert registry.register("a", schema("x")) == 1
    assert not (tmp_path / "schemas.json").exists()


def test_a_refused_schema_tells_subject_and_reason(registry):
    registry.register("a", schema("x"))
    with pytest.raises(IncompatibleSchema, match=r"subject 'a'.*'y' without a default") as caught:
        registry.register("a", schema("x", "y"))
    assert caught.value.code == 409


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda r: r.versions("no"), SubjectNotFound),
        (lambda r: r.version("a", 9), VersionNotFound),
        (lambda r: r.schema(99), SchemaNotFound),
        (lambda r: r.register("a", '{"type":"no"}'), InvalidSchema),
        (lambda r: r.set_compatibility("SOMETIMES"), InvalidLevel),
    ],
)
def test_errors_of_the_api_keep_their_meaning(registry, call, error):
    registry.register("a", schema("x"))
    with pytest.raises(error):
        call(registry)


def test_levels_are_set_and_read(registry):
    assert registry.compatibility() == registry.compatibility("a") == "BACKWARD"
    registry.set_compatibility("FULL")
    registry.set_compatibility("NONE", "a")
    assert (registry.compatibility(), registry.compatibility("a")) == ("FULL", "NONE")


def test_compatibility_can_be_asked_for(registry):
    registry.register("a", schema("x"))
    assert registry.is_compatible("a", schema("x", y=1))
    assert not registry.is_compatible("a", schema("x", "y"))


def test_user_and_password_come_from_the_url_and_stay_secret(tmp_path, caplog):
    with RegistryServer(EmbeddedRegistry(tmp_path), credentials="us er:p@ss:word") as server:
        host = server.url.removeprefix("http://")
        with caplog.at_level(logging.DEBUG):
            assert ConfluentRegistry(f"http://us%20er:p%40ss%3Aword@{host}").register("a", schema("x")) == 1
            with pytest.raises(Unauthorized) as caught:
                ConfluentRegistry(f"http://us%20er:wr0ng@{host}").register("a", schema("x"))
            with pytest.raises(Unauthorized):
                ConfluentRegistry(server.url).subjects()
        assert "wr0ng" not in str(caught.value)
        for secret in ("p@ss", "p%40ss", "wr0ng"):
            assert secret not in caplog.text


class _Unwell(BaseHTTPRequestHandler):
    """Answers 503 a few times, then as a registry would."""

    answers: list[int]
    asked: list[int]

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        status = self.answers.pop(0) if self.answers else 200
        self.asked.append(status)
        body = b'{"id": 7}' if status == 200 else b'{"error_code": 50003, "message": "not now"}'
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def unwell():
    handler = type("Handler", (_Unwell,), {"answers": [], "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", handler
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_request_is_repeated_while_the_registry_is_unwell(unwell):
    url, handler = unwell
    handler.answers += [503, 503]
    assert ConfluentRegistry(url).register("a", schema("x")) == 7
    assert handler.asked == [503, 503, 200]


def test_repeats_are_bounded(unwell):
    url, handler = unwell
    handler.answers += [503] * 9
    with pytest.raises(RegistryError, match="not now"):
        ConfluentRegistry(f"{url}?retries=2").register("a", schema("x"))
    assert handler.asked == [503] * 3


def test_a_refusal_is_not_repeated(unwell):
    url, handler = unwell
    handler.answers += [409]
    with pytest.raises(IncompatibleSchema):
        ConfluentRegistry(url).register("a", schema("x"))
    assert handler.asked == [409]


def test_an_unreachable_registry_is_told():
    with pytest.raises(RegistryUnreachable, match=r"subject 'a'.*http://127\.0\.0\.1:1 gives no answer"):
        ConfluentRegistry("http://127.0.0.1:1?retries=0").register("a", schema("x"))


def test_of_several_servers_one_that_answers_is_enough(server):
    url = f"http://127.0.0.1:1,{server.url}?retries=0"
    assert ConfluentRegistry(url).register("a", schema("x")) == 1


def test_tls_with_an_authority_of_ones_own(tmp_path):
    certificate, key = _certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with RegistryServer(EmbeddedRegistry(tmp_path / "r"), "localhost", tls=context) as server:
        assert ConfluentRegistry(f"{server.url}?ca={certificate}").register("a", schema("x")) == 1
        with pytest.raises(RegistryUnreachable, match=r"(?i)certificate"):
            ConfluentRegistry(f"{server.url}?retries=0").register("a", schema("x"))


def _certificate(folder):
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder / "cert.pem", folder / "key.pem"


@pytest.mark.parametrize(
    "url",
    [
        "http://h?retries=-1",
        "http://h?timeout=soon",
        "http://h?colour=red",
        "h:1",
        "http://[bad",
        "http://h:1,http://[x]",
        "file://[bad",
    ],
)
def test_a_wrong_url_is_refused_before_anything_is_asked(url):
    with pytest.raises(RegistryError, match="schema-registry"):
        open_url(url)


def _status(url, data=None, method=None):
    request = urllib.request.Request(url, data, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as problem:
        return problem.code, json.load(problem)


def test_the_server_speaks_the_api(server):
    assert _status(server.url) == (200, {})
    assert _status(f"{server.url}/schemas/types") == (200, ["AVRO"])
    status, answer = _status(f"{server.url}/subjects/no/versions")
    assert (status, answer["error_code"]) == (404, 40401)
    status, answer = _status(f"{server.url}/schemas/ids/x")
    assert (status, answer["error_code"]) == (404, 40403)
    assert _status(f"{server.url}/nothing")[0] == 404
    assert _status(f"{server.url}/subjects/a/versions", b"[", "POST")[1]["error_code"] == 42201
    assert _status(f"{server.url}/subjects/a/versions", b"{}", "POST")[1]["error_code"] == 42201
    status, answer = _status(f"{server.url}/config/a")
    assert (status, answer["error_code"]) == (404, 40408)
    assert _status(f"{server.url}/config/a?defaultToGlobal=true") == (200, {"compatibilityLevel": "BACKWARD"})


def test_the_server_explains_an_incompatibility(server, registry):
    registry.register("a", schema("x"))
    body = json.dumps({"schema": schema("x", "y")}).encode()
    url = f"{server.url}/compatibility/subjects/a/versions/latest?verbose=true"
    status, answer = _status(url, body, "POST")
    assert (status, answer["is_compatible"]) == (200, False)
    assert "READER_FIELD_MISSING_DEFAULT_VALUE at /y" in answer["messages"][0]
