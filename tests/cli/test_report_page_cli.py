"""`tct report`: the page as a file. It is well formed, loads nothing, escapes everything and is never long."""

import os
import re
import sqlite3
import stat
import time

import pytest
from tests.cli.commands import run
from tests.cli.pages import SHARED, Page, batch, write

import targetcharge as tc
from targetcharge.ledger import Answer, Unit
from targetcharge.ledger.sqlite import inspect

NASTY = "<script>alert('x')</script>\"'&<b>\u202eשלום\x00\ud800"
LOADS = {
    "src",
    "srcset",
    "href",
    "xlink:href",
    "action",
    "formaction",
    "data",
    "poster",
    "background",
    "ping",
    "on",
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def hit(seq, name="q", **more):
    return Answer(5, True, 1.0, seq, name, (("NotPrior", None),), 0.1, received=1e9 + seq, grains=(1,), **more)


def miss(seq, name="q", **more):
    return Answer(None, False, 0.0, seq, name, (("NotPrior", None),), 0.1, received=1e9 + seq, **more)


@pytest.fixture
def ledger(here):
    return write(here / "visits.db", SHARED, [miss(1), hit(2, scale=10.0, interval=(-25, 35)), miss(3)])


def page_at(name):
    with open(name, encoding="utf-8") as file:  # noqa: PTH123 - names are relative
        return Page(file.read())


def check_alone(page):
    """Nothing is loaded, nothing is run."""
    for each in page.elements:
        assert each.name not in (
            "script",
            "link",
            "iframe",
            "object",
            "embed",
            "img",
            "image",
            "use",
            "base",
            "form",
        )
        for name, value in each.attributes.items():
            assert not name.startswith("on"), each
            assert name not in LOADS or (name == "href" and re.fullmatch(r"#q\d+", value)), each
            assert "url(" not in (value or "")
    assert "http:" not in page.source
    assert "https:" not in page.source
    assert not re.search(r"url\(|@import|expression\(", page.text("style"))
    (policy,) = page.all("meta", **{"http-equiv": "Content-Security-Policy"})
    assert policy.attributes["content"].startswith("default-src 'none'; style-src 'unsafe-inline'")


def test_the_page_stands_alone(ledger):
    assert run("report", ledger).code == 0
    page = page_at("visits.report.html")
    check_alone(page)
    assert page.one("html").attributes == {"lang": "en"}
    assert "".join(page.all("title")[0].parts) == "Privacy report: visits.db"
    names = [each.attributes["id"] for each in page.elements if "id" in each.attributes]
    assert len(set(names)) == len(names)
    for each in page.elements:
        for name in each.attributes.get("aria-labelledby", "").split():
            assert name in names
        if each.name == "a":
            assert each.attributes["href"][1:] in names


def test_pictures_are_told_in_words_and_tables_have_heads(ledger):
    run("report", ledger)
    page = page_at("visits.report.html")
    pictures = page.all("svg", role="img")
    assert len(pictures) == 3
    for each in pictures:
        title, told = page.within(each, "title"), page.within(each, "desc")
        assert len(title) == len(told) == 1
        assert "".join(told[0].parts)
    for each in page.all("svg"):
        outer = any(other in pictures for other in each.around)
        assert each in pictures or outer or each.attributes["aria-hidden"] == "true"
    for table in page.all("table"):
        heads = [each for each in page.within(table, "th") if each.attributes["scope"] == "col"]
        assert all("".join(each.parts) for each in heads)


def test_whatever_users_wrote_is_text(here):
    terms = SHARED.__class__(**{**SHARED.__dict__, "unit": Unit("column", NASTY)})
    entries = [
        Answer(NASTY, True, 1.0, 1, NASTY, (("NotPrior", NASTY),), 0.1, grains=(1,), key=(NASTY, 7)),
        Answer(b"<i>", True, 1.0, 2, "q", ((NASTY,),), 0.1, grains=(1,), key="</td></table>", question=NASTY),
        Answer(
            ("<u>", 10**5000), True, 1.0, 3, "q", (("NotPrior",),), 0.1, grains=(1,), candidate=4, call="select"
        ),
    ]
    assert run("report", write(here / "<x>.db", terms, entries)).code == 0
    page = page_at("<x>.report.html")
    check_alone(page)
    assert not {each.name for each in page.elements} & {"b", "u", "script"}
    assert page.source.count("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&#34;&#39;&amp;&lt;b&gt;") >= 4
    assert "\u202e" not in page.source
    assert "\x00" not in page.source
    assert "\\u202eשלום\\x00\\ud800" in page.text("h1")
    assert all(any(around.name in ("bdi", "a") for around in each.around) for each in _direct(page, "שלום"))
    assert "&lt;/td&gt;&lt;/table&gt;" in page.source


def _direct(page, words):
    """Innermost elements with these words."""
    result = [each for each in page.elements if words in "".join(each.parts)]
    return [
        each
        for each in result
        if each.name not in ("bdi", "title", "a") and not any(each in other.around for other in result)
    ]


def test_the_same_ledger_gives_the_same_page(ledger):
    first, second = (run("report", ledger, "--output", "-").out for _ in range(2))
    time.sleep(1.1)
    third = run("report", ledger, "--output", "-").out
    bare = [re.sub(r"<time .*?</time>", "", each) for each in (first, second, third)]
    assert bare[0] == bare[1] == bare[2]
    assert first != third
    assert first.count("<time") == 1


def test_the_head_and_the_version_are_on_the_page(ledger):
    result, page = inspect(ledger), Page(run("report", ledger, "--output", "-").out)
    facts = page.facts()
    assert (facts["last entry"], facts["its hash"]) == ("3", result.state.head.hex())
    assert facts["identity"] == "visits"
    assert facts["verified"] == "yes: 3 entries, every hash and every total is right"
    assert f"targetcharge {tc.__version__}" in page.text("footer")
    assert str(ledger.parent) not in page.source


def test_where_the_page_goes(ledger, here):
    result = run("report", ledger)
    assert (result.code, result.out) == (0, "visits.report.html: 3 answers, 1 hit\n")
    assert stat.S_IMODE(os.stat("visits.report.html").st_mode) == 0o666 & ~_mask()  # noqa: PTH116 - a relative path, as written
    assert run("report", ledger).code == 0  # its own earlier page is replaced
    assert run("report", ledger, "--output", here / "sub.html").code == 0
    assert sorted(each.name for each in here.iterdir() if "html" in each.name) == [
        "sub.html",
        "visits.report.html",
    ]


def _mask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_nothing_else_is_ever_overwritten(ledger, here):
    kept = ledger.read_bytes()
    other = write(here / "other.db", SHARED, [hit(1)])
    (here / "notes.html").write_text("<!doctype html>\n<p>mine")
    (here / "empty.html").touch()
    (here / "folder").mkdir()
    (here / "gone.html").symlink_to(here / "nowhere.html")
    assert run("report", other, "--output", "taken.html").code == 0
    for name in ("notes.html", "empty.html", "taken.html", "visits.db", "folder", "gone.html", "no/where.html"):
        result = run("report", ledger, "--output", name)
        assert (result.code, result.out) == (2, ""), name
        assert "--output" in result.err
        assert name.split("/")[0] in result.err.replace("\n", "")
    assert (here / "notes.html").read_text() == "<!doctype html>\n<p>mine"
    assert ledger.read_bytes() == kept
    assert page_at("taken.html").facts()["identity"] == "other"


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_to(ledger, here):
    (here / "locked").mkdir(mode=0o500)
    assert run("report", ledger, "--output", "locked/page.html").code == 2


def test_a_ledger_that_was_changed_is_reported_as_such(ledger):
    _change(ledger, "UPDATE entries SET body = replace(body, '\"outcome\":5', '\"outcome\":6') WHERE number = 2")
    result = run("report", ledger)
    assert result.code == 4
    assert "entry 2 is not what was written" in result.err.replace("\n", " ")
    page = page_at("visits.report.html")
    check_alone(page)
    assert page.text("h1").endswith("for units of patient, but it was damaged or changed")
    alert = page.text("p", role="alert")
    assert f"the ledger {ledger.name} was damaged or changed: entry 2 is not what was written" in alert
    assert str(ledger.resolve().parent) not in page.source
    assert page.facts()["verified"].startswith("no: ")
    assert "Everything published" not in page.source
    assert "Not shown" in page.told("meter")  # no odometer


@pytest.mark.parametrize("body", ["{}", '{"version":1,"kind":"answer","hit":true}', "ü", "[]"])
def test_what_cannot_be_read_is_named_and_the_rest_is_told(ledger, body):
    _change(ledger, "UPDATE entries SET body = ? WHERE number = 3", body)
    assert run("report", ledger).code == 4
    page = page_at("visits.report.html")
    assert page.tiles()["answers"] == 2
    assert "Not read: entry 3 and what follows: an entry of the ledger cannot be read" in page.text(
        "p", role="alert"
    )


@pytest.mark.parametrize(
    "change",
    [
        """UPDATE state SET header = replace(header, '"typical":["1"]', '"typical":["0"]')""",
        """UPDATE state SET header = replace(header, '"capacities":["7"]', '"capacities":["0"]')""",
        """UPDATE state SET header = replace(header, '"query_epsilon":"0x1', '"query_epsilon":"-0x1')""",
        """UPDATE state SET header = replace(header, '"targets":[["NotPrior"]]', '"targets":[3]')""",
        """UPDATE entries SET body = replace(body, '"received":', '"received":"x","delta":')""",
        """UPDATE entries SET body = replace(body, '"hit":true', '"hit":"yes"')""",
        """UPDATE entries SET body = replace(body, '"scale":10.0', '"scale":-1e-400')""",
        """UPDATE entries SET body = replace(body, '"interval":[-25,35]', '"interval":["a","b"]')""",
    ],
)
def test_nonsense_in_the_file_is_no_crash(ledger, change):
    _change(ledger, change)
    result = run("report", ledger)
    assert result.code == 4
    assert "damaged or changed" in result.err.replace("\n", " ")


def test_without_a_header_there_is_no_page(ledger, here):
    _change(ledger, "UPDATE state SET header = '{}'")
    result = run("report", ledger)
    assert (result.code, result.out) == (4, "")
    assert not list(here.glob("*.html"))


def test_a_restored_copy_is_reported_as_such(ledger, here):
    (here / "copy.db").write_bytes(ledger.read_bytes())
    result = run("report", "copy.db")
    assert result.code == 4
    page = page_at("copy.report.html")
    assert page.text("h1").endswith("for units of patient, but it may have lost charges")
    assert "looks like a restored copy" in page.text("p", role="alert")
    assert "0 hits left" in page.told("meter")
    assert "counts as spent" in page.told("meter")


@pytest.mark.parametrize(("name", "code"), [("missing.db", 2), ("text.db", 2), ("other.sqlite", 4)])
def test_what_is_no_ledger_is_named(here, name, code):
    (here / "text.db").write_text("no database at all")
    with sqlite3.connect(here / "other.sqlite") as database:
        database.execute("CREATE TABLE mine (a)")
    database.close()
    result = run("report", name)
    assert result.code == code
    assert name in result.err or "not a ledger" in result.err


def test_a_page_is_opened_on_request(ledger, monkeypatch):
    opened = []
    monkeypatch.setattr("typer.launch", lambda url: opened.append(url) or 1)
    result = run("report", ledger, "--open")
    assert opened == [os.path.realpath("visits.report.html")]
    assert "open visits.report.html yourself" in result.err


def test_a_hundred_thousand_answers_take_seconds_and_less_than_a_megabyte(here):
    terms = SHARED.__class__(**{**SHARED.__dict__, "capacities": (10_000,)})
    keys = [f"key {k}" for k in range(1000)]
    runs = [batch(keys, 5, 1000 * n + 1, "watched", received=1e9 + 1000 * n, scale=10.0) for n in range(50)]
    singles = [(hit if n % 25 == 0 else miss)(n, f"{n % 3000}: {'<' * 400}") for n in range(50_001, 100_001)]
    path = write(here / "large.db", terms, [*runs, *singles])
    start = time.perf_counter()
    assert run("report", path).code == 0
    took = time.perf_counter() - start
    assert took < 60  # about 4 s; other tests may run beside it
    page = page_at("large.report.html")
    assert len(page.source.encode()) < 1_000_000
    assert page.tiles() == {"answers": 100_000, "hits": 2050, "free answers": 97_950, "spent in vain": 0}
    assert page.rows("asked")[1][:4] == ["1watched", "a value is published", "50,000 1,000 keys", "50"]
    assert "Not shown: 2,901 questions with 48,3" in page.told("asked")
    assert "The last 300 of 2,050 hits." in page.told("asked")
    assert f"tct ledger show large.db --json --last {50 + 50_000}" in page.text("code")
    assert len(page.rows("asked", 1)) == 301


def _change(path, statement, *values):
    database = sqlite3.connect(path)
    assert database.execute(statement, values).rowcount
    database.commit()
    database.close()


def test_a_disk_that_is_full_leaves_the_earlier_page(ledger, here, monkeypatch):
    assert run("report", ledger).code == 0
    before = (here / "visits.report.html").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    result = run("report", ledger)
    assert result.code == 2
    assert "No space left on device" in result.err.replace("\n", " ")
    assert (here / "visits.report.html").read_bytes() == before
    assert [each.name for each in here.iterdir() if "html" in each.name] == ["visits.report.html"]
