"""Every page, anchor and file that the sources and the docs point to exists, and Markdown lines are short."""

import re
import unicodedata
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
MADE = {"site", "out", "build", "dist"}
FOLDERS = [path for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "." and path.name not in MADE]
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in folder.rglob("*.md"))])
SOURCES = sorted([*PAGES, *(file for folder in FOLDERS for file in folder.rglob("*.py"))])

PACKAGE = ROOT / "src" / "targetcharge"
BASES = (ROOT, PACKAGE)

MENTION = re.compile(r"\bdocs/[\w./-]+\.md(?:#[\w-]+)?")  # anywhere: a page, from the root
LINK = re.compile(r"\]\(([^)\s]+)\)")  # in a page: relative to the page
INLINE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w.-]+/[\w./-]*|[\w-]+\.(?:py|md)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
FORMER_ANCHORS = """
    definitions structure-lemma the-papers-theorem errata q-values exact-accounting any-q-targets
    the-notprior-recursion-solved certificate run-twice renyi-charging renyi-prices boundary caution
    several-targets from-the-theorems-to-a-session tables individual-charging permute-and-flip
    distinct-counts streams votes odometer which-meter-when baselines golden-values references
"""
HEADING = re.compile(r"^#{1,6} (.*)$", re.MULTILINE)


def text(path: Path) -> str:
    return path.read_text("utf-8")


def github_slug(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-")


def mkdocs_slug(heading: str) -> str:
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page that both GitHub and the built site know."""
    headings = HEADING.findall(FENCED.sub("", text(page)))
    return frozenset(map(github_slug, headings)) & frozenset(map(mkdocs_slug, headings))


def broken(link: str, base: Path, page: Path) -> bool:
    """Return whether a link on `page`, relative to the folder `base`, points to nothing."""
    path, _, anchor = link.partition("#")
    target = (base / path).resolve() if path else page
    return not target.exists() or (anchor != "" and anchor not in anchors(target))


def test_pages_that_are_mentioned_exist():
    mentions = [(file, link) for file in SOURCES for link in MENTION.findall(text(file))]
    assert len(mentions) > 40
    assert [(str(file), link) for file, link in mentions if broken(link, ROOT, file)] == []


def test_links_lead_somewhere():
    words = {page: re.sub(r"`[^`\n]*`", "", FENCED.sub("", text(page))) for page in PAGES}
    links = [(page, link) for page in PAGES for link in LINK.findall(words[page]) if "://" not in link]
    assert len(links) > 100
    assert [(str(page), link) for page, link in links if broken(link, page.parent, page)] == []


def test_links_to_the_theory_when_it_was_one_page_lead_on():
    """Every section had its anchor there; it has one still, beside a link to the same section on its own page."""
    index = ROOT / "docs" / "theory" / "index.md"
    leading = dict(re.findall(r'<a id="([\w-]+)"></a>\[[^\]]+\]\(([\w.#-]+)\)', text(index)))
    assert set(FORMER_ANCHORS.split()) - set(leading) <= anchors(index)
    assert [link for anchor, link in leading.items() if not link.endswith(("#" + anchor, f"{anchor}.md"))] == []


def test_lines_are_short():
    lines = [(page, number, line) for page in PAGES for number, line in enumerate(text(page).split("\n"), 1)]
    assert [f"{page}:{number}" for page, number, line in lines if len(line) >= 120] == []


def test_every_page_is_in_the_navigation():
    listed = re.findall(r"^ +- ([\w./-]+\.md)$", text(ROOT / "mkdocs.yml"), re.MULTILINE)
    docs = ROOT / "docs"
    assert sorted(listed) == sorted(str(page.relative_to(docs)) for page in docs.rglob("*.md"))


def test_files_that_the_maps_name_exist():
    """A path from the root or from the package, or the bare name of a file in the sources or tests."""
    names = {file.name for file in SOURCES}
    wrong = []
    for page in (ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md"):
        paths = [code for code in INLINE.findall(text(page)) if PATH.fullmatch(code)]
        assert len(paths) > 30
        wrong += [
            path for path in paths if path not in names and not any((base / path).exists() for base in BASES)
        ]
    assert wrong == []


def test_every_package_is_on_the_map():
    words = text(ROOT / "docs" / "architecture.md")
    parts = [part for part in PACKAGE.iterdir() if part.is_dir() or part.suffix == ".py"]
    names = {part.name if part.is_file() else f"{part.name}/" for part in parts if not part.name.startswith("__")}
    assert {name for name in names if f"`{name}`" not in words} == set()


def test_the_glossary_is_short():
    words = text(ROOT / "docs" / "architecture.md").partition("## Words")[2].partition("## Packages")[0]
    assert 20 <= len(re.findall(r"\*\*[^*]+\*\*", words)) <= 25


def test_a_broken_link_would_be_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# The paper's theorem\n\n```\n# a comment\n```\n")
    assert anchors(page) == {"the-papers-theorem"}
    assert not broken("page.md#the-papers-theorem", tmp_path, page)
    assert not broken("#the-papers-theorem", tmp_path, page)
    assert broken("page.md#a-comment", tmp_path, page)
    assert broken("other.md", tmp_path, page)
    assert MENTION.findall("(see docs/theory/exact.md#certificate)") == ["docs/theory/exact.md#certificate"]
