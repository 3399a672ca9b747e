"""The field names of history rows, taken out of the JSON by each engine, whatever the text is."""

from __future__ import annotations

import json

from sqlalchemy import event, insert

from airflow_provider_nrllm.database.site import SiteDatabase
from airflow_provider_nrllm.edits.field_names import field_names, fields_by_row
from airflow_provider_nrllm.outcomes.evidence import Action
from tests.typo3 import tables as tables

SECRET = "secret content"


def lay(engine, *rows):
    """Lay history rows of ``action, history_data`` into the site; their uids count from 1."""
    with engine.begin() as connection:
        connection.execute(
            insert(tables.history),
            [
                {"uid": uid, "actiontype": int(action), "history_data": data, "tablename": "tt_content", "recuid": 1}
                for uid, (action, data) in enumerate(rows, start=1)
            ],
        )


def read(engine, number):
    with engine.connect() as connection:
        return fields_by_row(connection.execute(field_names(connection.dialect.name, range(1, number + 1))))


def modified(*names):
    record = dict.fromkeys(names, SECRET)
    return json.dumps({"oldRecord": record, "newRecord": record})


TEXTS = [
    (Action.MODIFY, modified("header", "bodytext"), {"header", "bodytext"}),
    (Action.MODIFY, '{"oldRecord":{"a":1},"newRecord":{"b":null},"workspace":1}', {"b"}),
    (Action.MODIFY, ' { "newRecord" :\n{ "a" : -1.5e+3 , "b":[1,{"c":true}]}\t} ', {"a", "b"}),
    (Action.MODIFY, json.dumps({"newRecord": {"a": "\\ \" / \n \u00e9 \N{ROCKET} \x01"}}), {"a"}),
    (Action.MODIFY, '{"newRecord":{"a":"é 🚀 \\ud83d\\ude80"}}', {"a"}),
    (Action.ADD, '{"header":"x","newRecord":{"a":1},"pid":2}', {"header", "newRecord", "pid"}),
    (Action.PUBLISH, modified("bodytext"), {"bodytext"}),
    # It names no field.
    (Action.PUBLISH, '{"workspaceId":1,"comment":"","recipients":[]}', set()),
    (Action.PUBLISH, None, set()),
    (Action.PUBLISH, "", set()),
    (Action.PUBLISH, "[]", set()),
    (Action.MODIFY, '{"oldRecord":[],"newRecord":[]}', set()),
    (Action.MODIFY, '{"oldRecord":{},"newRecord":{}}', set()),
    (Action.MODIFY, "[]", set()),
    # It cannot be read.
    (Action.MODIFY, None, None),
    (Action.MODIFY, "", None),
    (Action.MODIFY, " ", None),
    (Action.MODIFY, '{"oldRecord":{"a":1}}', None),
    (Action.MODIFY, '{"newRecord":"a"}', None),
    (Action.MODIFY, "17", None),
    (Action.MODIFY, "null", None),
    (Action.MODIFY, '"newRecord"', None),
    (Action.MODIFY, modified("header")[:-1], None),
    (Action.MODIFY, modified("header")[:-1] + "]", None),
    (Action.MODIFY, 'a:2:{s:9:"oldRecord";a:1:{s:1:"a";i:1;}s:9:"newRecord";a:0:{}}', None),
    (Action.MODIFY, "{newRecord:{a:1}}", None),
    (Action.MODIFY, '{"newRecord":{"a":01}}', None),
    (Action.MODIFY, '{"newRecord":{"a":1,}}', None),
    (Action.MODIFY, '{"newRecord":{"a":1}}{"newRecord":{"a":1}}', None),
    (Action.MODIFY, "{'newRecord':{'a':1}}", None),
    (Action.MODIFY, '{"newRecord":{"a":\x01}}', None),
    (Action.MODIFY, '{"newRecord":{\x01:\x02}}', None),
    (Action.MODIFY, '{"newRecord":{"a":tru e}}', None),
    (Action.MODIFY, "[[[[[[[[[[[[[[[[[[[[", None),
    (Action.PUBLISH, modified("header")[:-1], None),
    (Action.ADD, '{"header":"x"', None),
]  # fmt: skip


def test_only_what_can_be_read_names_fields(site):
    lay(site.engine, *((action, data) for action, data, _ in TEXTS))
    expected = [(action, data, None if names is None else frozenset(names)) for action, data, names in TEXTS]
    found = read(site.engine, len(TEXTS))
    assert expected == [(action, data, found[uid]) for uid, (action, data, _) in enumerate(TEXTS, start=1)]


def test_a_text_cut_off_anywhere_names_no_field_and_breaks_nothing(site):
    whole = json.dumps(
        {"oldRecord": {"a": 'x "} ] \\', "n": [1, None]}, "newRecord": {"b": '{"c":""}', "d": 1.5, "e": False}}
    )
    lay(site.engine, *((Action.MODIFY, whole[:length]) for length in range(1, len(whole) + 1)))
    found = read(site.engine, len(whole))
    assert frozenset({"b", "d", "e"}) == found.pop(len(whole))
    assert {None} == set(found.values())


def test_what_postgresql_takes_no_keys_from_cannot_be_read_there_and_raises_nothing(server_site):
    # A null character and half of a surrogate pair are JSON, but no text of PostgreSQL.
    lay(
        server_site.engine,
        (Action.MODIFY, '{"newRecord":{"a":"\\u0000"}}'),
        (Action.MODIFY, '{"newRecord":{"a":"\\ud83d"}}'),
        (Action.MODIFY, '{"newRecord":{"a":"\\ude80"}}'),
        (Action.MODIFY, '{"newRecord":{"a":' + "[" * 12 + "]" * 12 + "}}"),
    )
    found = set(read(server_site.engine, 4).values())
    assert {None} == found if "postgres" == server_site.name else found <= {None, frozenset({"a"})}


def test_no_value_comes_out_of_the_database(site):
    lay(
        site.engine,
        (Action.MODIFY, modified("header")),
        (Action.ADD, json.dumps({"header": SECRET})),
        (Action.MODIFY, modified("header")[:-3]),
        (Action.MODIFY, f's:14:"{SECRET}";'),
        (Action.MODIFY, json.dumps({"newRecord": SECRET})),
    )
    with site.engine.connect() as connection:
        rows = connection.execute(field_names(connection.dialect.name, range(1, 6))).fetchall()
    assert 5 == len(rows)
    assert SECRET not in repr(rows)


def test_an_article_of_a_megabyte_is_read(site):
    body = 'A paragraph with "quotes" and a line.\n' * 25_000
    lay(site.engine, *[(Action.MODIFY, json.dumps({"newRecord": {"bodytext": body, "header": "x"}}))] * 2)
    assert frozenset({"bodytext", "header"}) == read(site.engine, 2)[1]


def test_the_column_of_record_content_is_only_used_inside_expressions(site):
    """Each mention of the column is an argument of a function or an operand, never a column of the result."""
    database = SiteDatabase(site.conn_id)
    sent = []

    @event.listens_for(database.engine, "before_cursor_execute")
    def _keep(_connection, _cursor, statement, _parameters, _context, _many):
        sent.append(statement)

    lay(site.engine, (Action.MODIFY, modified("header")))
    with database.snapshot() as connection:
        result = connection.execute(field_names(connection.dialect.name, [1]))
        assert "history_data" not in list(result.keys())
        result.fetchall()
    assert any("history_data" in statement for statement in sent)
