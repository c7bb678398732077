"""A local stand-in for W&B's server, which keeps what it is sent, records what it refuses, and can stop answering.

W&B does not publish its schema. `SCHEMA` is the part of it that W&B's client uses, as the operations in wandb-core and
wandb-workspaces declare it; graphql-core validates every request by it. File streams and uploads are checked by hand.
"""

import base64
import hashlib
import json
import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from graphql import GraphQLError, GraphQLScalarType, build_schema, graphql_sync
from local_server import Quiet, Server

ENTITY = "me"
SCHEMA = build_schema("""
scalar JSONString
scalar JSON

type Query {
  viewer: User
  serverInfo: ServerInfo
  model(name: String, entityName: String): Project
  project(name: String, entityName: String): Project
}
type User { id: ID!, entity: String, username: String, email: String, flags: JSONString, admin: Boolean, teams: Teams }
type Teams { edges: [TeamEdge!]! }
type TeamEdge { node: Entity }
type ServerInfo { features: [Feature!]! }
type Feature { name: String!, isEnabled: Boolean! }
type Entity { id: ID!, name: String!, organization: Organization, xxhashDigestsEnabled: Boolean }
type Organization { name: String!, orgEntity: Entity }
type Project {
  id: ID!, name: String!, entity: Entity!
  bucket(name: String!, missingOk: Boolean): Run
  artifact(name: String!): Artifact
  artifactType(name: String!): ArtifactType
}
type Run {
  id: ID!, name: String!, displayName: String, description: String, notes: String, tags: [String!]
  config: JSONString, summaryMetrics: JSONString, sweepName: String, project: Project
  historyLineCount: Int, eventsLineCount: Int, logLineCount: Int, historyTail: JSONString, eventsTail: JSONString
  wandbConfig(keys: [String!]): JSONString
}
type View { id: ID!, name: String, displayName: String, spec: String }
type ArtifactType { name: String!, artifactCollection(name: String!): ArtifactSequence }
type ArtifactSequence { digestAlgorithm: String, latestArtifact: Artifact }
type Artifact {
  id: ID!, state: String!, digest: String!, artifactSequence: ArtifactSequence!, artifactType: ArtifactType!
}

type Mutation {
  upsertBucket(input: UpsertBucketInput!): UpsertBucketPayload
  createRunFiles(input: RunFilesInput!): CreateRunFilesPayload
  upsertView(input: UpsertViewInput!): UpsertViewPayload
  createArtifact(input: CreateArtifactInput!): CreateArtifactPayload
  createArtifactManifest(input: CreateArtifactManifestInput!): ArtifactManifestPayload
  createArtifactFiles(input: CreateArtifactFilesInput!): CreateArtifactFilesPayload
  commitArtifact(input: CommitArtifactInput!): CommitArtifactPayload
}
input UpsertBucketInput {
  id: String, name: String, groupName: String, modelName: String, entityName: String, description: String
  displayName: String, notes: String, config: JSONString, commit: String, host: String, debug: Boolean
  jobProgram: String, jobRepo: String, jobType: String, state: String, sweep: String, tags: [String!]
  summaryMetrics: JSONString
}
type UpsertBucketPayload { bucket: Run!, inserted: Boolean! }
input RunFilesInput { entityName: String!, projectName: String!, runName: String!, files: [String!]! }
type CreateRunFilesPayload { runID: ID!, uploadHeaders: [String!]!, files: [RunFile!]! }
type RunFile { name: String!, uploadUrl: String! }
enum ViewSource { WANDB_SDK }
input UpsertViewInput {
  id: ID, entityName: String, projectName: String, name: String, displayName: String, description: String
  type: String, spec: String, createdUsing: ViewSource
}
type UpsertViewPayload { view: View!, inserted: Boolean! }
enum ArtifactManifestType { FULL, INCREMENTAL, PATCH }
enum ArtifactDigestAlgorithm { MANIFEST_MD5, MANIFEST_XXH128 }
input ArtifactAliasInput { artifactCollectionName: String!, alias: String! }
input CreateArtifactInput {
  entityName: String!, projectName: String!, runName: String, artifactTypeName: String!
  artifactCollectionName: String, artifactCollectionNames: [String!], digest: String!
  digestAlgorithm: ArtifactDigestAlgorithm, description: String, labels: JSONString, aliases: [ArtifactAliasInput!]
  metadata: JSONString, historyStep: Int, distributedID: String, clientID: ID!, sequenceClientID: ID
  enableDigestDeduplication: Boolean, ttlDurationSeconds: Int, tags: [String!], clientMutationId: String
  storageRegion: String, cloudRegionID: ID
}
type CreateArtifactPayload { artifact: Artifact! }
input CreateArtifactManifestInput {
  artifactID: ID!, baseArtifactID: ID, name: String!, digest: String!, entityName: String!, projectName: String!
  runName: String!, type: ArtifactManifestType
}
type ArtifactManifestPayload { artifactManifest: ArtifactManifest! }
type ArtifactManifest { id: ID!, file: ArtifactFile! }
type ArtifactFile {
  id: ID!, storagePath: String, uploadUrl: String, uploadHeaders: [String!], artifact: Artifact
  uploadMultipartUrls: MultipartUrls
}
type MultipartUrls { uploadID: String, uploadUrlParts: [UrlPart!]! }
type UrlPart { partNumber: Int, uploadUrl: String }
enum ArtifactStorageLayout { V1, V2 }
input CreateArtifactFileSpecInput {
  artifactID: ID!, name: String!, md5: String!, mimetype: String, artifactManifestID: ID, uploadPartsInput: [JSON!]
}
input CreateArtifactFilesInput {
  artifactFiles: [CreateArtifactFileSpecInput!]!, storageLayout: ArtifactStorageLayout, cloudRegionID: ID
  clientMutationId: String
}
type CreateArtifactFilesPayload { files: ArtifactFiles! }
type ArtifactFiles { edges: [ArtifactFileEdge!]! }
type ArtifactFileEdge { node: ArtifactFile! }
input CommitArtifactInput { artifactID: ID! }
type CommitArtifactPayload { artifact: Artifact! }
""")


def json_text(value: Any) -> str:
    """The value, which must be JSON in a string. Raises GraphQLError otherwise."""
    try:
        json.loads(value)
    except (TypeError, ValueError) as error:
        raise GraphQLError(f"no JSON: {value!r}") from error
    return str(value)


JSON_STRING = SCHEMA.type_map["JSONString"]
assert isinstance(JSON_STRING, GraphQLScalarType)
JSON_STRING.parse_value = json_text  # type: ignore[method-assign]
STREAMS = {"wandb-history.jsonl", "wandb-events.jsonl", "wandb-summary.json", "output.log"}
STREAM_KEYS = {"files", "uploaded", "dropped", "complete", "exitcode", "preempting"}


@dataclass
class StoredRun:
    """A run as the server has it: fields of its bucket, lines of its streams, and the status with which it exited."""

    bucket: dict[str, Any]
    streams: dict[str, list[str]] = field(default_factory=dict)
    exit_code: int | None = None

    def history(self) -> list[dict[str, Any]]:
        return list(map(json.loads, self.streams.get("wandb-history.jsonl", [])))

    def summary(self) -> dict[str, Any]:
        lines = self.streams.get("wandb-summary.json", ["{}"])
        return dict(json.loads(lines[-1]))


@dataclass
class Store:
    """Everything that was sent.

    Attributes:
        url: Address of the server.
        runs: Runs by id.
        views: Inputs of the saved workspaces.
        artifacts: Artifacts by id.
        uploads: Contents of the uploaded files by the path of their URL.
        operations: Kinds and names of the GraphQL operations, in order.
        refused: Messages for what was refused, which should be none.
        began: When the first run began, by the monotonic clock.
    """

    url: str
    runs: dict[str, StoredRun] = field(default_factory=dict)
    views: list[dict[str, Any]] = field(default_factory=list)
    artifacts: dict[str, dict[str, Any]] = field(default_factory=dict)
    uploads: dict[str, bytes] = field(default_factory=dict)
    operations: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    began: float = math.inf
    lock: Any = field(default_factory=threading.RLock)

    # Queries

    def viewer(self, info: Any) -> dict[str, Any]:
        names = {"entity": ENTITY, "username": ENTITY, "email": ""}
        return {"id": "v", **names, "flags": "{}", "teams": {"edges": []}}

    def serverInfo(self, info: Any) -> dict[str, Any]:
        return {"features": []}

    def project(self, info: Any, name: str | None = None, entityName: str | None = None) -> dict[str, Any]:
        return {
            **{"id": "p", "name": name, "entity": {"id": "e", "name": entityName or ENTITY}},
            "bucket": lambda _, name, missingOk=False: self.bucket(name),
            "artifact": lambda _, name: self.named_artifact(name),
            "artifactType": lambda _, name: {"name": name, "artifactCollection": lambda _, name: None},
        }

    model = project

    def bucket(self, name: str) -> dict[str, Any] | None:
        if name not in self.runs:
            return None
        run = self.runs[name]
        lines = {kind: run.streams.get(f"wandb-{kind}.jsonl", []) for kind in ("history", "events")}
        return {
            **run.bucket,
            **{f"{kind}LineCount": len(found) for kind, found in lines.items()},
            **{f"{kind}Tail": json.dumps(found[-1:]) for kind, found in lines.items()},
            "logLineCount": len(run.streams.get("output.log", [])),
            "summaryMetrics": json.dumps(run.summary()),
            "wandbConfig": "{}",
        }

    def named_artifact(self, name: str) -> dict[str, Any] | None:
        """Newest artifact of a collection, such as `run-1-table:latest`."""
        found = [it for it in self.artifacts.values() if it["collection"] == name.partition(":")[0]]
        return found[-1] if found else None

    # Mutations

    def upsertBucket(self, info: Any, input: dict[str, Any]) -> dict[str, Any]:
        name = input["name"]
        inserted = name not in self.runs
        self.began = min(self.began, time.monotonic())
        run = self.runs.setdefault(name, StoredRun({"id": f"run:{name}", "name": name}))
        run.bucket |= {key: value for key, value in input.items() if value is not None and key != "id"}
        run.bucket["project"] = self.project(info, input["modelName"], input.get("entityName"))
        return {"bucket": self.bucket(name), "inserted": inserted}

    def createRunFiles(self, info: Any, input: dict[str, Any]) -> dict[str, Any]:
        name = input["runName"]
        if name not in self.runs:
            raise GraphQLError(f"there is no run {name}")
        files = [{"name": it, "uploadUrl": f"{self.url}/run/{name}/{it}"} for it in input["files"]]
        return {"runID": self.runs[name].bucket["id"], "uploadHeaders": [], "files": files}

    def upsertView(self, info: Any, input: dict[str, Any]) -> dict[str, Any]:
        json_text(input["spec"])
        self.views.append(input)
        return {"view": {**input, "id": f"view{len(self.views)}"}, "inserted": True}

    def createArtifact(self, info: Any, input: dict[str, Any]) -> dict[str, Any]:
        number = f"artifact{len(self.artifacts)}"
        collection = input.get("artifactCollectionName") or (input.get("artifactCollectionNames") or [""])[0]
        self.artifacts[number] = {
            **{
                "id": number,
                "state": "PENDING",
                "digest": input["digest"],
                "files": {},
                "collection": collection,
            },
            **{
                "artifactType": {"name": input["artifactTypeName"]},
                "artifactSequence": {"latestArtifact": None},
            },
        }
        return {"artifact": self.artifacts[number]}

    def createArtifactManifest(self, info: Any, input: dict[str, Any]) -> dict[str, Any]:
        artifact = self.artifact(input["artifactID"])["id"]
        file = {"id": artifact, "uploadUrl": f"{self.url}/artifact/{artifact}/manifest", "uploadHeaders": []}
        return {"artifactManifest": {"id": artifact, "file": file}}

    def createArtifactFiles(self, info: Any, input: dict[str, Any]) -> dict[str, Any]:
        edges = []
        for file in input["artifactFiles"]:
            artifact = self.artifact(file["artifactID"])
            artifact["files"][file["name"]] = file["md5"]
            place = f"/artifact/{artifact['id']}/{file['name']}"
            node = {"id": place, "storagePath": place, "uploadUrl": self.url + place, "uploadHeaders": []}
            edges.append({"node": {**node, "artifact": artifact}})
        return {"files": {"edges": edges}}

    def commitArtifact(self, info: Any, input: dict[str, Any]) -> dict[str, Any]:
        artifact = self.artifact(input["artifactID"])
        for name, digest in artifact["files"].items():
            content = self.uploads.get(f"/artifact/{artifact['id']}/{name}")
            if content is None or md5(content) != digest:
                raise GraphQLError(f"{name} of {artifact['collection']} was not uploaded as it was announced")
        artifact["state"] = "COMMITTED"
        return {"artifact": artifact}

    def artifact(self, number: str) -> dict[str, Any]:
        if number not in self.artifacts:
            raise GraphQLError(f"there is no artifact {number}")
        return self.artifacts[number]

    # Streams

    def stream(self, name: str, sent: dict[str, Any]) -> None:
        """Add lines to the streams of a run. Raises ValueError for what is no such message."""
        if name not in self.runs:
            raise ValueError(f"there is no run {name}")
        if unknown := sent.keys() - STREAM_KEYS:
            raise ValueError(f"unknown keys: {sorted(unknown)}")
        run = self.runs[name]
        for stream, chunk in sent.get("files", {}).items():
            if stream not in STREAMS or chunk.keys() != {"offset", "content"}:
                raise ValueError(f"no chunk of a stream: {stream}, {sorted(chunk)}")
            lines, offset = run.streams.setdefault(stream, []), chunk["offset"]
            if not 0 <= offset <= len(lines):
                raise ValueError(f"{stream}: the offset is {offset}, and there are {len(lines)} lines")
            if stream != "output.log":
                list(map(json.loads, chunk["content"]))
            lines[offset : offset + len(chunk["content"])] = chunk["content"]
        if sent.get("complete"):
            run.exit_code = sent["exitcode"]


def md5(content: bytes) -> str:
    return base64.b64encode(hashlib.md5(content).digest()).decode()


class Handler(Quiet):
    protocol_version = "HTTP/1.1"
    server: Any  # with `store`, `seconds` and `over`, see `served`

    def do_GET(self) -> None:
        self.answer({})

    def do_POST(self) -> None:
        store, body = self.server.store, self.body()
        if self.path == "/graphql":
            self.answer(self.executed(json.loads(body)))
        elif self.path.endswith("/file_stream"):
            with store.lock:
                try:
                    store.stream(self.path.split("/")[4], json.loads(body))
                except (KeyError, TypeError, ValueError) as error:
                    store.refused.append(f"{self.path}: {error!r}")
            self.answer({"limits": {}})
        else:  # telemetry
            self.answer({})

    def executed(self, sent: dict[str, Any]) -> dict[str, Any]:
        store, variables = self.server.store, sent.get("variables")
        with store.lock:
            result = graphql_sync(SCHEMA, sent["query"], store, variable_values=variables)
            store.operations.append(sent["query"].strip().partition("(")[0].strip(" {\n"))
            store.refused += [f"{error.message} in {sent['query']}" for error in result.errors or ()]
        return dict(result.formatted)

    def do_PUT(self) -> None:
        content = self.body()
        with self.server.store.lock:
            self.server.store.uploads[unquote(self.path)] = content
        self.answer({})

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, content: Any) -> None:
        server = self.server
        if server.seconds == 0 or time.monotonic() - server.store.began > server.seconds:
            server.over.wait()
            return
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def served(seconds: float = math.inf) -> Iterator[Store]:
    """Serve until the end of the block. The server never answers if `seconds` is 0, else until `seconds` into a run."""
    with Server(("127.0.0.1", 0), Handler) as server:
        store = Store(f"http://127.0.0.1:{server.server_port}")
        server.store, server.seconds, server.over = store, seconds, threading.Event()  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield store
        finally:
            server.over.set()  # type: ignore[attr-defined]
            server.shutdown()
            thread.join()
