"""An ORM: SQLAlchemy with BLOB, TEXT and JSON fields, over PyMySQL and over MariaDB's connector."""

import json
import random

import pytest
from harness.server import ENGINE
from harness.values import text
from payloads import check_fetched, sha256
from sqlalchemy import JSON, ForeignKey, String, cast, create_engine, delete, event, func, select, update
from sqlalchemy.dialects.mysql import LONGBLOB, LONGTEXT, MEDIUMBLOB
from sqlalchemy.ext.mutable import MutableDict
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, deferred, mapped_column, relationship, undefer

SCHEMA = "orm"
OPTIONS = {"mysql_engine": ENGINE, "mariadb_engine": ENGINE, "mysql_charset": "utf8mb4", "mariadb_charset": "utf8mb4"}


class Base(DeclarativeBase):
    pass


class Document(Base):
    __tablename__ = "documents"
    __table_args__ = OPTIONS
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(String(100), index=True)
    body: Mapped[bytes | None] = deferred(mapped_column(LONGBLOB))
    words: Mapped[str | None] = mapped_column(LONGTEXT)
    meta: Mapped[dict | None] = mapped_column(MutableDict.as_mutable(JSON(none_as_null=True)))
    version: Mapped[int] = mapped_column()
    pages: Mapped[list["Page"]] = relationship(
        back_populates="document", cascade="all, delete-orphan", order_by="Page.number"
    )
    # Each UPDATE names the version it read: rows changed behind its back are an error.
    __mapper_args__ = {"version_id_col": version}


class Page(Base):
    __tablename__ = "pages"
    __table_args__ = OPTIONS
    id: Mapped[int] = mapped_column(primary_key=True)
    document_id: Mapped[int] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"))
    number: Mapped[int]
    image: Mapped[bytes | None] = mapped_column(MEDIUMBLOB)
    document: Mapped[Document] = relationship(back_populates="pages")


@pytest.fixture(params=["pymysql", "mariadbconnector"])
def engine(client_server, request):
    client_server.query(f"DROP DATABASE IF EXISTS {SCHEMA}")
    client_server.query(f"CREATE DATABASE {SCHEMA}")
    engine = create_engine(f"mariadb+{request.param}://{client_server.account}@/{SCHEMA}?unix_socket={client_server.socket}")
    Base.metadata.create_all(engine)
    for name in ("documents", "pages"):
        status = client_server.query(f"SHOW TABLE STATUS FROM {SCHEMA} LIKE '{name}'")
        assert status[0][1].upper() == ENGINE.upper()
    yield engine
    engine.dispose()
    client_server.query(f"DROP DATABASE {SCHEMA}")


def metadata(number, padding_characters):
    """A JSON value of about so many characters."""
    return {
        "kind": "scan" if number % 2 else "photo",
        "number": number,
        "size": {"width": 100 * number, "height": 50.5},
        "tags": ["red", "blue\u20ac", f"t{number}"],
        "nothing": None,
        "padding": text(number, padding_characters),
        "is_open": number % 3 == 0,
    }


PADDING_CHARACTERS = [0, 3000, 5000, 70000, 1 << 20]


def fill(engine):
    with Session(engine) as session:
        for number, characters in enumerate(PADDING_CHARACTERS):
            session.add(Document(id=number + 1, title=f"document {number}", meta=metadata(number, characters)))
        session.add(Document(id=100, title="no metadata"))
        session.commit()


@pytest.mark.nightly
def test_bodies_of_all_sizes(engine, all_values):
    for value in all_values:
        with Session(engine) as session:
            session.add(Document(id=value.id + 1, title=str(value.id), body=value.read()))
            session.commit()
    with Session(engine) as session:
        statements = []
        event.listen(engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2]))
        documents = session.scalars(select(Document).order_by(Document.id)).all()
        assert len(statements) == 1 and "body" not in statements[0], "a deferred column was read before it was used"
        check_fetched({document.id - 1: document.body for document in documents}, all_values)
        session.expunge_all()
        rows = session.execute(
            select(Document.id - 1, func.length(Document.body), func.sha2(Document.body, 256))
        )
        assert {row[0]: (row[1], row[2]) for row in rows} == {
            value.id: (value.size_bytes, value.sha256) for value in all_values
        }


def test_json_values_and_paths(engine):
    fill(engine)
    meta = Document.meta
    with Session(engine) as session:
        for number, characters in enumerate(PADDING_CHARACTERS):
            assert session.get(Document, number + 1).meta == metadata(number, characters)
        assert session.get(Document, 100).meta is None

        def numbers(*conditions):
            return list(session.scalars(select(Document.id).where(*conditions).order_by(Document.id)))

        assert numbers(meta["kind"].as_string() == "scan") == [2, 4]
        assert numbers(meta[("size", "width")].as_integer() >= 200) == [3, 4, 5]
        assert numbers(meta[("size", "height")].as_float() == 50.5) == [1, 2, 3, 4, 5]
        assert numbers(meta[("tags", 2)].as_string() == "t4") == [5]
        assert numbers(meta["is_open"].as_boolean()) == [1, 4]
        assert numbers(func.json_contains(meta, '"red"', "$.tags") == 1, Document.id < 3) == [1, 2]
        assert numbers(func.json_type(func.json_query(meta, "$.size")) == "OBJECT") == [1, 2, 3, 4, 5]
        assert numbers(func.json_exists(meta, "$.padding") == 1) == [1, 2, 3, 4, 5]
        assert numbers(func.json_valid(meta) == 0) == []
        assert numbers(meta.is_(None)) == [100]
        length = func.char_length(func.json_value(meta, "$.padding"))
        lengths = session.scalars(select(length).where(meta.is_not(None)).order_by(Document.id))
        assert list(lengths) == PADDING_CHARACTERS
        # As plain SQL: an array made rows.
        rows = session.connection().exec_driver_sql(
            "SELECT documents.id, tags.tag FROM documents, "
            "JSON_TABLE(meta, '$.tags[*]' COLUMNS (tag VARCHAR(20) PATH '$')) tags WHERE tags.tag LIKE 't_' ORDER BY documents.id"
        )
        assert [tuple(row) for row in rows] == [(n + 1, f"t{n}") for n in range(len(PADDING_CHARACTERS))]


def test_json_changes(engine):
    """By the attribute (the whole value is written), and by JSON_SET in the server."""
    fill(engine)
    expected = {number + 1: metadata(number, characters) for number, characters in enumerate(PADDING_CHARACTERS)}
    with Session(engine) as session:
        for number in (1, 3, 5):
            document = session.get(Document, number)
            document.meta["kind"] = expected[number]["kind"] = "changed \u20ac"
            document.meta["extra"] = expected[number]["extra"] = [1, {"deep": [None, True]}] * 500
            session.flush()
        session.commit()
        session.execute(
            update(Document)
            .where(Document.meta.is_not(None))
            .values(meta=func.json_set(Document.meta, "$.size.width", -1), version=Document.version + 1),
            execution_options={"synchronize_session": False},
        )
        session.execute(
            update(Document)
            .where(Document.id == 4)
            .values(meta=func.json_remove(Document.meta, "$.padding", "$.tags[0]"), version=Document.version + 1),
            execution_options={"synchronize_session": False},
        )
        session.commit()
    for value in expected.values():
        value["size"]["width"] = -1
    del expected[4]["padding"], expected[4]["tags"][0]
    with Session(engine) as session:
        documents = session.scalars(select(Document).where(Document.meta.is_not(None)))
        assert {document.id: document.meta for document in documents} == expected


def test_unit_of_work(engine, small_values):
    """Relations, savepoints, rollback, optimistic versions, row locks, cascades: what an application does all day."""
    values = [value for value in small_values if value.size_bytes is not None]
    with Session(engine) as session:
        document = Document(title="album", words=text(1, 30000), meta=metadata(1, 10000), body=b"cover" * 4000)
        document.pages = [Page(number=value.id, image=value.read()) for value in values]
        session.add(document)
        session.commit()
        key = document.id

        nested = session.begin_nested()
        for page in document.pages:
            page.image = b"lost"
        session.flush()
        nested.rollback()
        document.title = "renamed"
        session.commit()

        document.words = "lost"
        session.flush()
        session.rollback()

    with Session(engine) as session:
        document = session.get(Document, key, options=[undefer(Document.body)], with_for_update=True)
        assert (document.title, document.words, document.body) == ("renamed", text(1, 30000), b"cover" * 4000)
        expected = {value.id: value.sha256 for value in values}
        assert {page.number: sha256(page.image) for page in document.pages} == expected
        # One page leaves, two change places, all by their objects.
        first, second, *_, last = document.pages
        first.image, second.image = second.image, first.image
        document.pages.remove(last)
        session.commit()
        pages = session.scalars(select(Page).execution_options(yield_per=2))
        swapped = {page.number: sha256(page.image) for page in pages}
        del expected[values[-1].id]
        expected[values[0].id], expected[values[1].id] = values[1].sha256, values[0].sha256
        assert swapped == expected

    with Session(engine) as one, Session(engine) as other:
        mine, theirs = one.get(Document, key), other.get(Document, key)
        mine.body = b"mine" * 5000
        one.commit()
        theirs.body = b"theirs" * 5000
        with pytest.raises(Exception, match="expected to update 1 row"):
            other.commit()
        other.rollback()
        assert other.get(Document, key).body == b"mine" * 5000

    with Session(engine) as session:
        session.execute(delete(Document).where(Document.id == key))
        session.commit()
        assert session.scalar(select(func.count()).select_from(Page)) == 0


def test_bulk_insert_and_merge(engine):
    bodies = {number: random.Random(number).randbytes(number * 1500) for number in range(1, 40)}
    with Session(engine) as session:
        session.execute(
            Document.__table__.insert(),
            [
                {"id": number, "title": f"bulk {number}", "body": body, "version": 1, "meta": {"n": number}}
                for number, body in bodies.items()
            ],
        )
        session.commit()
        for number in (1, 20, 39, 50):
            bodies[number] = b"merged" * (1000 * number)
            session.merge(Document(id=number, title="merged", body=bodies[number], version=None if number == 50 else 1))
        session.commit()
        session.expunge_all()
        rows = session.execute(select(Document.id, Document.body, cast(Document.title, String(10))))
        assert {key: sha256(body) for key, body, _ in rows} == {key: sha256(body) for key, body in bodies.items()}
        stored = session.scalars(select(Document).where(Document.title.startswith("bulk")))
        assert all(json.loads(json.dumps(document.meta)) == {"n": document.id} for document in stored)
