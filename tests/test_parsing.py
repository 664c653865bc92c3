"""The reading of answers: a corpus decided by hand, properties, mutations, time and depth."""

from __future__ import annotations

import gc
import json
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cads_env.errors import ProposalError
from cads_env.parsing import MAX_ENTRY_LENGTH, ParsedProposal, parse_proposal, without_thinking
from cads_env.parsing.names import Lookup, lookup_for

GENES = tuple(
    "TP53 MYC KRAS EGFR BRAF BRCA1 ATM CDK4 RB1 MDM2 AKT1 MTOR PTEN SET CAT REST IMPACT WAS MAX "
    "HLA-A NKX2-1".split()
)
REGISTRIES: dict[str, tuple[str, ...]] = {
    "genes": GENES,
    "depmap": ("TP53 (7157)", "MYC (4609)", "KRAS (3845)", "HLA-A (3105)"),
    "drugs": (
        "acetylsalicylic acid",
        "2,4-dinitrophenol",
        "N,N-dimethyltryptamine",
        "trimethoprim/sulfamethoxazole",
        "vitamin B12",
        "imatinib",
    ),
    "smiles": (
        "CCO",
        "C/C=C/C",
        "C=C",
        "CC",
        "c1ccccc1",
        "C1CCCCC1",
        "CC(=O)O",
        "[Na+].[Cl-]",
        "C[C@@H](N)C(=O)O",
    ),
    "numbered": tuple(f"gene_{i}" for i in range(20)),
    "cases": ("abc1", "ABC1", "Def2", "A/B"),
    "codes": tuple(f"C{i:05d}" for i in range(1, 13)),
}
# As long and as full of separators as names of compounds are.
SYSTEMATIC = (
    "(E)-N-[4-(3-chloro-4-fluoroanilino)-7-methoxyquinazolin-6-yl]-4-(dimethylamino)but-2-enamide",
    "2,4,6-trinitro-1,3-dimethyl-5-tert-butylbenzene",
    "C/C=C/C=C/C(=O)O",
    "CC(=O)O",
    "[Na+].[Cl-]",
    "A, B, C and D",
)
CORPUS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "corpus" / "answers.jsonl")
    .read_text(encoding="utf-8")
    .split("\n")
    if line
]
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
MARKUP = st.lists(
    st.sampled_from(
        [*GENES[:4], *'[]{}()<>",:|-*#`\n\t ', "1. ", "<think>", "</think>", "```", "é"]
    )
).map("".join)


def seconds(text: str, identifiers: tuple[str, ...]) -> float:
    # The collector walks over what all other tests left behind; that is not the reader's time.
    gc.disable()
    try:
        start = time.process_time()
        parse_proposal(text, identifiers)
        return time.process_time() - start
    finally:
        gc.enable()


@pytest.mark.parametrize("answer", CORPUS, ids=[answer["name"] for answer in CORPUS])
def test_answer_of_the_corpus_reads_as_decided_by_hand(answer: dict[str, Any]) -> None:
    parsed = parse_proposal(answer["text"], REGISTRIES[answer["identifiers"]])
    assert parsed == ParsedProposal(
        tuple(answer["proposed"]),
        tuple(answer["invalid"]),
        tuple(answer["duplicate"]),
        answer["unparsed"],
    )


def test_corpus_holds_250_answers_of_different_names() -> None:
    assert len({answer["name"] for answer in CORPUS}) == len(CORPUS) >= 250


@given(st.text() | MARKUP)
def test_any_text_gives_a_proposal_without_repeats_from_the_registry(text: str) -> None:
    parsed = parse_proposal(text, GENES)
    assert len(set(parsed.proposed)) == len(parsed.proposed)
    assert set(parsed.proposed) <= set(GENES)
    assert set(parsed.duplicate) <= set(parsed.proposed)
    assert all(0 < len(entry) <= MAX_ENTRY_LENGTH for entry in parsed.invalid)
    if parsed.unparsed:
        assert parsed[:3] == ((), (), ())


@given(st.lists(NAMES, unique=True), st.booleans(), st.randoms(use_true_random=False))
def test_json_array_of_any_identifiers_comes_back_in_order(
    names: list[str], ensure_ascii: bool, rng: random.Random
) -> None:
    registry = tuple(sorted(names))
    rng.shuffle(names)
    parsed = parse_proposal(json.dumps(names, ensure_ascii=ensure_ascii), registry)
    assert parsed == ParsedProposal(tuple(names), (), (), False)


@given(st.lists(st.sampled_from(GENES), unique=True, min_size=1), st.data())
def test_every_layout_of_a_list_reads_the_same(names: list[str], data: st.DataObject) -> None:
    layouts = {
        "lines": "\n".join(names),
        "numbers": "\n".join(f"{i}. {name}" for i, name in enumerate(names, 1)),
        "bullets": "\n".join(f"* **{name}** - of interest" for name in names),
        "commas": ", ".join(names),
        "table": "| Gene | Why |\n|---|---|\n" + "\n".join(f"| {name} | it is |" for name in names),
        "records": json.dumps([{"gene": name, "reason": "it is"} for name in names]),
    }
    layout = data.draw(st.sampled_from(sorted(layouts)))
    assert parse_proposal(layouts[layout], GENES) == ParsedProposal(tuple(names), (), (), False)


@given(MARKUP)
def test_reading_what_was_read_changes_nothing(text: str) -> None:
    proposed = parse_proposal(text, GENES).proposed
    assert parse_proposal(json.dumps(proposed), GENES).proposed == proposed


@given(MARKUP, MARKUP)
def test_text_in_think_tags_changes_nothing(thinking: str, answer: str) -> None:
    thinking = thinking.replace("<think>", "").replace("</think>", "")
    expected = parse_proposal("\n" + without_thinking(answer), GENES)
    assert parse_proposal(f"<think>{thinking}</think>\n{answer}", GENES) == expected


SNIPPETS = ["[", "]", "{", "}", '"', "'", "\\", "\\u12", "<think>", "</think>", "\n", "|", "1. "]
SNIPPETS += ["<|im_end|>", "<|im_start|>assistant", "```", ", ", " and ", "/", ": 0,9", "\x00", "é"]


def read_mutated(count: int) -> None:
    """Read that many answers of the corpus, each changed at up to six places."""
    rng = random.Random(20240611)
    aliases = {"p53": "TP53", "salt": "[Na+].[Cl-]"}
    for _ in range(count):
        answer = rng.choice(CORPUS)
        text = answer["text"]
        for _ in range(rng.randint(1, 6)):
            at = rng.randint(0, len(text))
            to = min(len(text), at + rng.randint(0, 8))
            text = text[:at] + rng.choice([*SNIPPETS, text[at:to] * 2, ""]) + text[to:]
        identifiers = REGISTRIES[answer["identifiers"]]
        parsed = parse_proposal(text, identifiers, aliases=rng.choice([None, aliases]))
        assert set(parsed.proposed) <= set(identifiers)
        assert set(parsed.duplicate) <= set(parsed.proposed)
        assert not parsed.unparsed or not any((parsed.proposed, parsed.invalid, parsed.duplicate))


def test_mutated_answers_never_raise() -> None:
    read_mutated(2_000)


@pytest.mark.slow
def test_twenty_thousand_mutated_answers_never_raise() -> None:
    read_mutated(20_000)


@pytest.mark.parametrize("length", range(len('{"genes": ["TP53", "MYC", "KRAS"]}') + 1))
def test_array_cut_off_anywhere_keeps_its_complete_elements(length: int) -> None:
    text = '{"genes": ["TP53", "MYC", "KRAS"]}'[:length]
    complete = tuple(name for name in ("TP53", "MYC", "KRAS") if f'"{name}"' in text)
    assert parse_proposal(text, GENES).proposed == complete


@pytest.mark.parametrize(
    "opening", ["[", "{", '{"a":', '["TP53",[', "[{", "(", "<think>", "- " * 3]
)
def test_deep_nesting_neither_raises_nor_proposes_wrongly(opening: str) -> None:
    parsed = parse_proposal(opening * 100_000, GENES)
    assert set(parsed.proposed) <= {"TP53"}


def test_name_inside_a_very_deep_array_is_found() -> None:
    assert parse_proposal("[" * 5000 + '"TP53"' + "]" * 5000, GENES).proposed == ("TP53",)


def test_invalid_entries_are_shortened() -> None:
    parsed = parse_proposal(json.dumps(["TP53", "X" * 1000]), GENES)
    assert parsed.invalid == ("X" * MAX_ENTRY_LENGTH,)


def test_ten_thousand_names_take_less_than_a_second_in_every_layout() -> None:
    registry = tuple(f"G{i}" for i in range(18_159))
    names = random.Random(5).sample(registry, 10_000)
    for text in (
        json.dumps(names),
        ", ".join(names),
        "\n".join(f"{i}. **{name}** - why (it is)" for i, name in enumerate(names, 1)),
        "\n".join(f"| {name} | it is |" for name in names),
        "we like " + " and we also like ".join(names),
    ):
        assert parse_proposal(text, registry).proposed == tuple(names)
        assert seconds(text, registry) < 1.0


@pytest.mark.parametrize(
    "unit",
    [
        "[",
        "{",
        '["',
        '{"a": "b',
        "<think",
        "</think>",
        "1. a (b) - c: d\n",
        "| a | b |\n",
        "a, ",
        " (",
        "/* ",
        "[/*",
        "\t ",
        "['a' ",
        "final answer: ",
        "**",
        '"\\',
        "x(y z",
        "[a](http://",
        "- ((((\n",
        "- TP53\n* MYC\n",
        "1. TP53\n- MYC\n",
        "TP53\n- MYC\n\n",
        "TP53\nis one of them.\n",
        "1.TP53 2.MYC ",
        "TP53 -> ",
        "TP53 and ",
        "Rank 1: ",
        "<gene>TP53</gene>",
        "<tr><td>",
        "\\text{",
        "a;b\n",
        "|-|\n",
        "gene: TP53\n",
    ],
)
def test_time_grows_in_proportion_to_the_text(unit: str) -> None:
    short = (unit * 25_000)[:25_000]
    # Eight times the text takes eight times as long, and twice that allows for noise; a quadratic
    # reading takes 64 times as long.
    allowed = 16 * max(seconds(short, GENES), 0.01)
    assert seconds((unit * 200_000)[:200_000], GENES) < allowed


def test_a_flood_of_ten_thousand_names_is_counted_to_the_last() -> None:
    registry = tuple(f"G{i}" for i in range(18_159))
    known = [f"G{i}" for i in range(10_000)]
    unknown = [f"H{i}" for i in range(10_000)]
    mixed = [name for pair in zip(known, unknown, strict=True) for name in pair]
    for text in (json.dumps(mixed), ", ".join(mixed), "\n".join(f"- {name}" for name in mixed)):
        parsed = parse_proposal(text, registry)
        assert parsed == ParsedProposal(tuple(known), tuple(unknown), (), False)


@pytest.mark.parametrize("joint", [", ", "\n", "; ", " | ", "\n- ", " -> "])
def test_a_name_a_thousand_times_is_one_proposal_and_its_repeats(joint: str) -> None:
    parsed = parse_proposal(joint.join(["TP53"] * 1_000), GENES)
    assert parsed == ParsedProposal(("TP53",), (), ("TP53",) * 999, False)


@pytest.mark.parametrize("identifiers", [*(REGISTRIES[key] for key in REGISTRIES), SYSTEMATIC])
@pytest.mark.parametrize(
    "unit",
    [
        "CC(=O)O, ",
        "C/C=C/C, ",
        "[Na+].[Cl-], ",
        "2,4-",
        "N,N-",
        "a, ",
        "é, ",
        "x (7157), ",
        "X/Y, ",
        "A, B, ",
        "CCO: a; ",
        "CCO > ",
        "1. CCO ",
        "['CCO', ",
        "，CCO",
        ",",
        "/",
        " and ",
        "<|im_end|>",
        "<|im_start|>",
        "<|channel|>analysis<|message|>",
        "\\n",
    ],
)
def test_a_hundred_thousand_characters_take_less_than_a_second(
    unit: str, identifiers: tuple[str, ...]
) -> None:
    # Read at a fifth of the length; time in proportion to the text is tested above.
    assert seconds((unit * 20_000)[:20_000], identifiers) < 0.2


def test_index_of_a_registry_is_built_once() -> None:
    registry = tuple(f"G{i}" for i in range(100))
    assert lookup_for(registry) is lookup_for(tuple(list(registry)))


def test_sequences_and_mappings_of_identifiers_read_the_same() -> None:
    expected = parse_proposal("TP53, MYC", GENES)
    assert expected.proposed == ("TP53", "MYC")
    assert parse_proposal("TP53, MYC", list(GENES)) == expected
    assert parse_proposal("TP53, MYC", {name: i for i, name in enumerate(GENES)}) == expected


@pytest.mark.parametrize("text", [None, b"TP53", 7, ["TP53"]])
def test_what_is_not_text_is_refused_with_its_type_named(text: Any) -> None:
    with pytest.raises(ProposalError, match=f"type {type(text).__name__}.*expected"):
        parse_proposal(text, GENES)


def test_one_string_in_place_of_identifiers_is_refused() -> None:
    with pytest.raises(ProposalError, match="expected a sequence of identifiers"):
        parse_proposal("TP53", "TP53")


@settings(max_examples=25)
@given(st.lists(st.sampled_from(GENES), min_size=1))
def test_repeats_are_counted_one_by_one(names: list[str]) -> None:
    parsed = parse_proposal(json.dumps(names), GENES)
    assert parsed.proposed == tuple(dict.fromkeys(names))
    assert len(parsed.duplicate) == len(names) - len(set(names))


@pytest.mark.parametrize("identifiers", [None, 5, b"ab", [1], [["a"]], ("A", None)])
def test_identifiers_that_are_no_text_are_refused(identifiers: Any) -> None:
    with pytest.raises(ProposalError, match="identifiers"):
        parse_proposal("A", identifiers)


ALIASES = {"p53": "TP53", "c-Myc": "MYC", "HER1": "EGFR", "KRAS": "MYC", "set": "CAT", "x1": "NONE"}


def test_aliases_are_looked_at_only_for_entries_that_are_no_identifier() -> None:
    text = "1. KRAS\n2. p53 - a suppressor\n3. **HER1**\n4. Set\n5. FOO1\n6. x1"
    parsed = parse_proposal(text, GENES, aliases=ALIASES)
    assert parsed.proposed == ("KRAS", "TP53", "EGFR", "SET")
    assert parsed.invalid == ("FOO1", "x1")
    assert parsed.aliased == (("p53", "TP53"), ("HER1", "EGFR"))


def test_a_name_and_its_alias_are_repeats_of_one_identifier() -> None:
    parsed = parse_proposal('["TP53", "p53", "P53", "c-myc"]', GENES, aliases=ALIASES)
    assert parsed.proposed == ("TP53", "MYC")
    assert parsed.duplicate == ("TP53", "TP53")
    assert parsed.aliased == (("p53", "TP53"), ("P53", "TP53"), ("c-myc", "MYC"))


def test_aliases_whose_letter_case_fits_two_of_them_are_not_used() -> None:
    aliases = {"her2": "TP53", "HER2": "MYC"}
    parsed = parse_proposal('["Her2", "HER2"]', GENES, aliases=aliases)
    assert parsed.proposed == ("MYC",)
    assert parsed.invalid == ("Her2",)


def test_no_alias_settles_an_identifier_whose_letter_case_is_ambiguous() -> None:
    parsed = parse_proposal('["Abc1"]', REGISTRIES["cases"], aliases={"Abc1": "Def2"})
    assert parsed == ParsedProposal((), ("Abc1",), (), False)


def test_words_of_prose_are_never_aliases() -> None:
    assert parse_proposal("We like p53 and also HER1.", GENES, aliases=ALIASES).unparsed


def test_an_alias_table_that_changes_is_read_anew() -> None:
    aliases = {"p53": "TP53"}
    assert parse_proposal('["p53"]', GENES, aliases=aliases).proposed == ("TP53",)
    aliases["p53"] = "MYC"
    assert parse_proposal('["p53"]', GENES, aliases=aliases).proposed == ("MYC",)


@given(st.text() | MARKUP)
def test_aliases_change_nothing_but_what_becomes_of_invalid_entries(text: str) -> None:
    plain = parse_proposal(text, GENES)
    assert plain.aliased == ()
    parsed = parse_proposal(text, GENES, aliases={"**": "TP53", "1": "MYC", "é": "KRAS"})
    assert set(plain.proposed) <= set(parsed.proposed)
    assert len(plain.invalid) == len(parsed.invalid) + len(parsed.aliased)
    assert parsed.unparsed == plain.unparsed


@pytest.mark.parametrize("aliases", ["p53", [("p53", "TP53")], {1: "TP53"}, {"p53": None}])
def test_aliases_of_other_types_are_refused(aliases: Any) -> None:
    with pytest.raises(ProposalError, match=r"aliases.*expected"):
        parse_proposal('["p53"]', GENES, aliases=aliases)


def test_many_threads_share_one_index() -> None:
    registry = tuple(f"H{i}" for i in range(5_000))
    seen: list[object] = []
    threads = [
        threading.Thread(target=lambda: seen.append(lookup_for(tuple(list(registry)))))
        for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 16
    assert len(set(map(id, seen))) == 1


def test_reading_an_answer_costs_a_fifth_of_indexing_its_registry() -> None:
    # About 1.5 ms at the genome's size, whatever came before.
    registry = tuple(f"Q{i}" for i in range(18_159))
    names = random.Random(3).sample(registry, 40)
    text = "\n".join(f"{i}. **{name}** - why it is one (reads)" for i, name in enumerate(names, 1))
    assert 1_500 < len(text) < 2_000
    first = seconds(text, registry)
    assert min(seconds(text, registry) for _ in range(9)) < 0.2 * first


def test_what_a_lookup_remembers_is_bounded_and_changes_no_answer() -> None:
    registry = tuple(f"Gene{i}" for i in range(6_000))
    texts = [f"({name.upper()})" for name in registry] + [f"(other{i})" for i in range(6_000)]
    lookup = Lookup(registry)
    for _ in range(2):
        found = [lookup.whole(text) for text in texts]
        assert found == [*registry, *[None] * 6_000]
        assert len(lookup._memo) <= 4_096
    assert lookup.whole("GENE0" + " " * 10_000) == "Gene0"
