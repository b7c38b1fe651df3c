"""What the attack suite plays: kinds of attack at doors of judgetree, read from the tests themselves.

``python -m tests.attacks.kinds`` lists every kind at every door with the test that plays it, and counts them. The names
of kinds and doors are the parameters of the tests. A parameter that is neither, such as a seed or a limit, counts
nothing. Every test of the folder is an attack, with an entry in ``ATTACKS``, or a check that counts nothing.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _pytest.mark.structures import ParameterSet

FOLDER = Path(__file__).parent
NO_ATTACKS = frozenset({"test_kinds", "test_writers"})
"""Modules that check the suite, or the code's shape."""
CHECKS = frozenset(
    {
        "test_deleting.test_every_command_is_one_that_deletes_or_one_that_does_not",
        "test_foreign_folders.test_a_newcomer_needs_no_consent",
        "test_foreign_folders.test_consents_are_listed_and_taken_back",
        "test_foreign_folders.test_every_setting_that_is_a_text_needs_consent_or_is_marked",
        "test_foreign_folders.test_what_the_environment_or_an_argument_sets_needs_no_consent",
        "test_postgres.test_a_statement_that_answers_slowly_is_waited_for",
        "test_postgres.test_every_connection_of_ours_gives_up_in_a_silence",
        "test_passages.test_every_label_of_our_prompts_is_known_as_one",
        "test_passages.test_material_holds_no_blank_line_and_is_not_changed_twice",
        "test_passages.test_material_keeps_what_a_passage_says",
        "test_passages.test_thirty_passages_are_different",
        "test_private_homes.test_whatever_makes_a_file_makes_it_private_or_says_why_not",
        "test_question_files.test_a_file_that_only_looks_large_is_read",
        "test_readers.test_every_reader_is_attacked_or_excused",
        "test_redis.test_doctor_says_what_a_redis_refuses",
        "test_redis.test_doctor_says_what_may_lose_conversations",
        "test_redis.test_no_kind_of_key_escapes_these_tests",
        "test_reserved_names.test_every_door_is_known",
        "test_spending_doors.test_every_command_that_asks_a_model_is_played_against_a_bill",
        "test_text_readers.test_a_pattern_that_takes_too_long_is_found",
        "test_text_readers.test_every_function_that_reads_a_text_is_called_or_excused",
        "test_text_readers.test_no_reason_outlives_its_function",
        "test_text_readers.test_patterns_that_are_made_from_arguments_have_a_reader",
    }
)
"""Tests that check the suite, the shape of the code, or that what is harmless passes."""


@dataclass(frozen=True, kw_only=True)
class Attack:
    """How the parameters of a test are to be read."""

    world: str
    """What the kinds are kinds of; equal names in one world are one kind."""
    kinds: str = ""
    """First name of the parameter that has the kinds; "" if the test is one kind."""
    kind: str = ""
    """Name of the one kind, where several tests play it; "" for the name of the test."""
    is_numbered: bool = False
    """Whether the names of the kinds end with numbers of variants, which are the same kind."""
    doors: str = ""
    """First name of the parameter that has the doors; "" if the test opens one door, which is named after it."""
    skips: str = ""
    """Name in the test's module of the (kind, door) pairs that it skips; "" for none."""


ATTACKS: dict[str, Attack] = {
    "test_bills.test_a_call_that_is_cancelled_between_attempts_costs_what_was_billed": Attack(
        world="bill", kind="cancelled-between-attempts"
    ),
    "test_bills.test_a_recording_that_fails_again_and_again_keeps_to_its_limit": Attack(
        world="bill", kind="fails-again-and-again"
    ),
    "test_bills.test_scoring_that_fails_again_and_again_keeps_to_its_limit": Attack(
        world="bill", kind="fails-again-and-again", doors="door"
    ),
    "test_bills.test_the_books_of_a_call_are_its_bill": Attack(world="bill", kinds="name", doors="streams"),
    "test_bills.test_the_usage_of_a_question_is_its_bill_in_each_of_its_runs": Attack(world="bill", kinds="name"),
    "test_clients.test_a_server_outlives_its_clients": Attack(world="client", kinds="client"),
    "test_deleting.test_a_dry_run_of_an_index_shows_all_that_would_change_and_makes_nothing": Attack(world="deletion"),
    "test_deleting.test_a_dry_run_says_what_and_how_much_and_deletes_nothing": Attack(world="deletion", doors="name"),
    "test_deleting.test_a_prune_without_a_path_is_refused": Attack(world="deletion"),
    "test_deleting.test_a_script_confirms_what_it_may_not_mean": Attack(world="deletion", doors="name"),
    "test_deleting.test_a_terminal_is_asked_after_what_and_how_much": Attack(world="deletion", doors="name"),
    "test_disks.test_a_full_disk_leaves_the_old_file": Attack(world="disk", doors="name"),
    "test_disks.test_a_folder_in_the_place_of_the_file_is_named": Attack(world="disk", doors="name"),
    "test_doors.test_a_packed_reply_is_refused_unread": Attack(world="packed reply", kinds="name", doors="door"),
    "test_doors.test_a_server_that_misbehaves_fails_every_door_in_time": Attack(
        world="server", kinds="name", doors="door", skips="SKIPPED"
    ),
    "test_embeddings.test_a_length_that_changes_between_batches_is_refused": Attack(world="vectors"),
    "test_embeddings.test_vectors_belong_to_their_texts": Attack(world="vectors", kinds="name"),
    "test_embeddings.test_wrong_vectors_are_refused_and_not_kept": Attack(world="vectors", kinds="name"),
    "test_embeddings.test_wrong_ranks_are_refused": Attack(world="ranks", kinds="name"),
    "test_expressions.test_a_hostile_expression_takes_little_memory": Attack(world="expression", kind="random"),
    "test_expressions.test_a_hostile_expression_takes_little_time": Attack(world="expression", kind="random"),
    "test_expressions.test_what_pythons_parser_warns_of_is_refused_in_silence": Attack(world="expression"),
    "test_files.test_a_hostile_file_is_read_or_skipped_within_its_limits": Attack(world="file", kinds="name"),
    "test_files.test_special_files_are_named_and_the_rest_is_read": Attack(world="file"),
    "test_foreign_folders.test_a_command_in_a_cloned_folder_sends_no_key_anywhere": Attack(world="folder"),
    "test_foreign_folders.test_a_consent_that_another_user_wrote_is_none": Attack(world="folder"),
    "test_foreign_folders.test_a_fifo_in_place_of_the_settings_file_is_named_without_waiting": Attack(world="folder"),
    "test_foreign_folders.test_a_foreign_env_file_is_refused_by_name": Attack(world="folder", kinds="foreign"),
    "test_foreign_folders.test_a_foreign_env_file_without_settings_stops_no_one": Attack(
        world="folder", kinds="foreign"
    ),
    "test_foreign_folders.test_a_foreign_home_is_refused_by_name": Attack(world="folder", kinds="foreign"),
    "test_foreign_folders.test_a_foreign_module_of_the_current_folder_does_not_run": Attack(
        world="folder", kinds="foreign"
    ),
    "test_foreign_folders.test_a_home_that_came_with_a_folder_names_no_code_of_it": Attack(world="folder"),
    "test_foreign_folders.test_a_home_that_came_with_a_folder_sends_no_key_to_its_address": Attack(world="folder"),
    "test_foreign_folders.test_a_plug_in_beside_replaces_none_that_is_installed": Attack(world="folder"),
    "test_foreign_folders.test_consent_to_its_content_makes_a_foreign_env_file_usable": Attack(world="folder"),
    "test_foreign_folders.test_no_module_is_looked_for_in_a_sticky_folder_of_all": Attack(world="folder"),
    "test_foreign_folders.test_no_package_loads_the_env_file_into_the_environment": Attack(world="folder"),
    "test_foreign_folders.test_root_behind_sudo_is_the_user_who_called_it": Attack(world="folder"),
    "test_foreign_folders.test_safe_folders_are_named_in_the_environment_alone": Attack(world="folder"),
    "test_foreign_folders.test_the_rule_is_that_of_the_user_who_runs": Attack(world="folder"),
    "test_foreign_folders.test_what_an_env_file_names_waits_for_consent": Attack(world="line of .env", kinds="line"),
    "test_ids.test_a_thread_with_a_hostile_id": Attack(world="id", kinds="thread_id"),
    "test_ids.test_a_conversation_with_a_hostile_name": Attack(world="id", kinds="name"),
    "test_ids.test_a_collection_with_a_hostile_name_is_refused": Attack(world="id", kinds="name"),
    "test_passages.test_a_hostile_passage_leaves_the_structure_of_a_prompt": Attack(
        world="passage", kinds="passage", doors="build", is_numbered=True
    ),
    "test_passages.test_a_rewrite_that_a_passage_has_steered_is_not_searched_for": Attack(
        world="passage", kind="steered-text"
    ),
    "test_passages.test_a_sub_question_that_a_passage_has_steered_is_not_asked": Attack(
        world="passage", kind="steered-text"
    ),
    "test_passages.test_evidence_is_split_where_it_was_joined": Attack(world="passage", kind="delimiter"),
    "test_postgres.test_a_server_without_a_free_connection_is_named": Attack(world="PostgreSQL"),
    "test_postgres.test_a_silent_server_is_given_up_by_loops": Attack(world="PostgreSQL"),
    "test_postgres.test_a_silent_server_is_given_up_by_threads": Attack(world="PostgreSQL"),
    "test_postgres.test_a_turn_survives_its_store": Attack(world="PostgreSQL", kinds="fault"),
    "test_private_homes.test_a_home_of_an_older_version_is_closed_and_nothing_else": Attack(world="modes"),
    "test_private_homes.test_a_whole_session_leaves_nothing_open": Attack(world="modes"),
    "test_private_homes.test_what_is_beside_a_shared_database_has_its_mode": Attack(world="modes"),
    "test_redis.test_a_turn_survives_its_redis": Attack(world="Redis", kinds="fault"),
    "test_redis.test_an_address_that_does_not_work_is_named_without_its_password": Attack(world="Redis", kinds="url"),
    "test_redis.test_a_password_that_is_wrong_or_missing_is_told": Attack(world="Redis", kinds="user"),
    "test_redis.test_a_password_stands_in_no_file_and_in_no_key": Attack(world="Redis"),
    "test_redis.test_a_silent_redis_is_given_up": Attack(world="Redis"),
    "test_redis.test_data_of_another_format_is_refused_by_name": Attack(world="Redis"),
    "test_redis.test_a_full_memory_refuses_a_save_whole": Attack(world="Redis"),
    "test_redis.test_conversations_are_deleted_from_a_full_memory": Attack(world="Redis"),
    "test_redis.test_a_server_that_speaks_another_way_may_speak_tls": Attack(world="Redis", kinds="is_silent"),
    "test_redis.test_a_thread_that_lost_a_key_is_not_begun_anew": Attack(world="Redis", kinds="lost"),
    "test_redis.test_a_thread_that_lost_any_keys_is_deleted_whole": Attack(world="Redis"),
    "test_redis.test_a_conversation_that_lost_a_key_is_named_and_deleted_whole": Attack(world="Redis", kinds="kind"),
    "test_redis.test_a_store_that_lost_its_id_has_that_of_its_conversations": Attack(world="Redis", kinds="kind"),
    "test_redis.test_a_redis_that_lost_its_format_alone_says_so": Attack(world="Redis"),
    "test_redis.test_what_is_left_of_a_conversation_is_deleted_by_its_command": Attack(world="Redis"),
    "test_redis.test_a_redis_that_was_emptied_between_two_turns_is_noticed": Attack(world="Redis"),
    "test_redis.test_a_redis_that_was_emptied_in_a_turn_keeps_nothing_of_it": Attack(world="Redis"),
    "test_redis.test_a_store_that_is_full_in_mid_search_names_the_thread": Attack(world="Redis"),
    "test_redis.test_a_store_that_was_emptied_in_mid_search_names_the_thread": Attack(world="Redis"),
    "test_redis.test_a_lock_whose_renewal_fails_in_a_way_that_nobody_knows_is_given_up": Attack(world="Redis"),
    "test_redis.test_a_save_that_is_sent_twice_is_one": Attack(world="Redis"),
    "test_redis.test_no_key_is_left_of_what_is_deleted": Attack(world="Redis"),
    "test_redis.test_a_lock_that_its_redis_forgot_ends_its_turn": Attack(world="Redis"),
    "test_redis.test_a_lock_that_ended_unnoticed_is_told": Attack(world="Redis"),
    "test_redis.test_a_lock_is_given_up_before_it_expires_while_redis_hangs": Attack(world="Redis"),
    "test_private_homes.test_what_is_private_is_so_before_its_first_byte": Attack(world="modes"),
    "test_question_files.test_a_file_that_unfolds_is_refused_by_name": Attack(world="file of questions", kinds="name"),
    "test_question_files.test_a_list_that_nests_without_end_is_no_question": Attack(world="file of questions"),
    "test_readers.test_a_hostile_file_is_refused_by_name": Attack(world="place of a file", kinds="place", doors="door"),
    "test_replies.test_a_judge_survives_a_hostile_reply": Attack(world="reply", kinds="reply"),
    "test_replies.test_a_reader_survives_a_hostile_stream": Attack(world="reply", kinds="reply"),
    "test_replies.test_a_sub_question_is_found_in_a_hostile_reply": Attack(world="reply", kinds="reply"),
    "test_reserved_names.test_a_command_refuses_it": Attack(world="name", kind="reserved", doors="words"),
    "test_reserved_names.test_a_rename_takes_no_name_that_is_taken_missing_or_wrong": Attack(world="name"),
    "test_reserved_names.test_a_route_refuses_it": Attack(world="name", kind="reserved", doors="route"),
    "test_reserved_names.test_a_server_that_serves_it_is_not_made": Attack(world="name", kind="reserved"),
    "test_reserved_names.test_documents_that_have_the_name_from_before_are_kept_and_renamed": Attack(world="name"),
    "test_reserved_names.test_the_library_refuses_it": Attack(world="name", kind="reserved", doors="name"),
    "test_reserved_names.test_what_was_renamed_stays_when_another_collection_takes_its_name": Attack(world="name"),
    "test_servers.test_a_page_in_place_of_a_reply_is_tried_again_and_then_a_fault_of_the_address": Attack(
        world="server", kind="html", doors="streams"
    ),
    "test_servers.test_a_refusal_for_good_is_not_repeated": Attack(world="server", kinds="behave", doors="streams"),
    "test_servers.test_a_server_that_misbehaves_fails_the_attempt_in_time": Attack(
        world="server", kinds="behave", doors="streams"
    ),
    "test_spending_doors.test_a_bill_keeps_to_the_limit_and_to_the_books": Attack(
        world="bill", kind="fails-again-and-again", doors="name"
    ),
    "test_text_readers.test_a_chain_is_linear_in_any_repetition": Attack(world="text", kind="random-repetition"),
    "test_text_readers.test_a_reader_is_linear": Attack(world="text", kind="repetition", doors="name"),
    "test_text_readers.test_a_reader_raises_typed_errors": Attack(world="text", kind="endless", doors="name"),
    "test_text_readers.test_a_reader_takes_a_second_at_most": Attack(world="text", kind="repetition", doors="name"),
    "test_text_readers.test_every_pattern_is_linear": Attack(world="text", kind="pump-of-a-pattern"),
    "test_text_readers.test_every_pattern_takes_a_second_at_most": Attack(world="text", kind="pump-of-a-pattern"),
    "test_thread_ids.test_a_question_under_such_an_id_is_refused_and_conversations_stay": Attack(
        world="id", kind="taken-by-the-product"
    ),
    "test_thread_ids.test_the_library_refuses_them_too": Attack(world="id", kind="taken-by-the-product"),
    "test_tls.test_faulty_tls_is_named_in_time": Attack(world="TLS", kinds="name", doors="door", skips="SKIPPED"),
    "test_tls.test_a_tls_port_asked_without_tls_is_named": Attack(world="TLS", doors="door"),
    "test_tls.test_broken_certificates_of_authorities_are_named": Attack(world="certificates", kinds="name"),
}
"""How the tests are to be read, by module and name."""


@dataclass(frozen=True, order=True)
class Played:
    """One kind at one door."""

    world: str
    kind: str
    door: str
    test: str


def played() -> list[Played]:
    """Return every kind at every door, in order."""
    return sorted({each for name, function in attack_tests() if name in ATTACKS for each in _played(name, function)})


def attack_tests() -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield the tests of this folder by ``module.name``."""
    for file in sorted(FOLDER.glob("test_*.py")):
        if file.stem in NO_ATTACKS:
            continue
        module = importlib.import_module(f"tests.attacks.{file.stem}")
        for name, value in vars(module).items():
            if name.startswith("test_") and getattr(value, "__module__", "") == module.__name__:
                yield f"{file.stem}.{name}", value


def _played(name: str, function: Callable[..., object]) -> Iterator[Played]:
    attack = ATTACKS[name]
    title = name.partition(".")[2].removeprefix("test_")
    parameters = parameters_of(function)
    skipped = vars(sys.modules[function.__module__])[attack.skips] if attack.skips else ()
    for kind in parameters[attack.kinds] if attack.kinds else [attack.kind or title]:
        for door in parameters[attack.doors] if attack.doors else [title]:
            if (kind, door) not in skipped:
                yield Played(attack.world, kind.rpartition("-")[0] if attack.is_numbered else kind, door, name)


def parameters_of(function: Callable[..., object]) -> dict[str, list[str]]:
    """Return the names of a test's cases, by the first name of each of its parameters."""
    marks = [mark for mark in getattr(function, "pytestmark", []) if mark.name == "parametrize"]
    return {_first_name(mark.args[0]): _names(list(mark.args[1]), mark.kwargs.get("ids")) for mark in marks}


def _first_name(names: str | Sequence[str]) -> str:
    return (names.split(",") if isinstance(names, str) else list(names))[0].strip()


def _names(values: Sequence[Any], ids: Any) -> list[str]:
    if callable(ids):
        return [_name(value, ids) for value in values]
    return [_name(name) for name in (values if ids is None else ids)]


def _name(value: Any, name_of: Callable[[Any], object] | None = None) -> str:
    if isinstance(value, ParameterSet):
        if value.id is not None:
            return str(value.id)
        value = value.values[0]
    if name_of is not None:
        return str(name_of(value))
    return str(getattr(value, "__name__", value))


def main() -> None:
    """Print every kind at every door, then their numbers."""
    found = played()
    for each in found:
        sys.stdout.write(f"{each.world} | {each.kind} | {each.door} | {each.test}\n")
    kinds = {(each.world, each.kind) for each in found}
    at_doors = {(each.world, each.kind, each.door) for each in found}
    sys.stdout.write(f"{len(kinds)} kinds, {len(at_doors)} kinds x doors\n")


if __name__ == "__main__":
    main()
