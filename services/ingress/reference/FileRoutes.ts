/** The reference of `/v1/files`. */
import { Schema } from "effect"
import { constant, EpochSeconds, field } from "../../../shared/contract/Fields.ts"
import * as Errors from "./Errors.ts"
import * as Headers from "./Headers.ts"
import { optionalQuery, parameter, type Route } from "./Route.ts"
import { binary, json, ref } from "./Schemas.ts"

const purpose = field(
  Schema.Literals(["batch", "batch_output"]),
  "`batch`: the requests of a batch. `batch_output`: its answers, which the gateway stores."
)

const File = Schema.Struct({
  id: field(Schema.String, "Unique per file."),
  object: constant("file", "A file."),
  bytes: field(Schema.Int, "The size in bytes."),
  created_at: field(EpochSeconds, "When it was uploaded."),
  expires_at: field(EpochSeconds, "When it is deleted: after 30 days."),
  filename: field(Schema.String, "The name that the client gave it."),
  purpose,
  status: constant("processed", "A file exists once it is stored and checked.")
})

const FileList = Schema.Struct({
  object: constant("list", "A list of files."),
  data: field(Schema.Array(File), "The latest first, unless `order` says otherwise."),
  first_id: field(Schema.NullOr(Schema.String), "The id of the first file."),
  last_id: field(Schema.NullOr(Schema.String), "The id of the last file: `after` for the next page."),
  has_more: field(Schema.Boolean, "Whether there is another page.")
})

const DeletedFile = Schema.Struct({
  id: field(Schema.String, "The id of the file."),
  object: constant("file", "A file."),
  deleted: constant(true, "It no longer exists.")
})

export const schemas = { File, FileList, DeletedFile }

const id = "file-019b0a1f3c5e6d2f7a8b9c0d1e2f3a4b"
const example = {
  id,
  object: "file",
  bytes: 1_204,
  created_at: 1_760_000_000,
  expires_at: 1_762_592_000,
  filename: "requests.jsonl",
  purpose: "batch",
  status: "processed"
}

const shared = {
  tag: "Files",
  key: "openai",
  dialect: "openai",
  path: "/v1/files/{file_id}",
  parameters: [{ ...parameter("path", "file_id", "The file's `id`."), example: id }],
  errors: [...Errors.of.keys, ...Errors.of.clientFiles, ...Errors.of.all]
} as const

export const routes: ReadonlyArray<Route> = [
  {
    ...shared,
    method: "post",
    path: "/v1/files",
    operationId: "files.create",
    summary: "Upload a file",
    description:
      "The requests of a batch, as JSON with a request on each line: up to 200 MB and 50,000 lines, within ten minutes. " +
      "Each has a `custom_id` that no other line has, `method` `POST`, `url` and `body`. An error names the line and its " +
      "field, and nothing of the file is stored.",
    parameters: [Headers.request("idempotency-key")],
    body: {
      required: true,
      content: {
        "multipart/form-data": {
          schema: {
            type: "object",
            required: ["file", "purpose"],
            properties: {
              file: { type: "string", format: "binary", description: "The content." },
              purpose: { type: "string", const: "batch", description: "What the file is for." }
            }
          }
        }
      }
    },
    headers: { ...Headers.of.limits, ...Headers.named(["idempotency-replayed"]) },
    responses: { 200: { description: "The file", content: json(ref("File"), { example }) } },
    errors: [...Errors.of.keys, ...Errors.of.idempotencyKeys, ...Errors.of.uploads, ...Errors.of.all]
  },
  {
    ...shared,
    method: "get",
    path: "/v1/files",
    operationId: "files.list",
    summary: "List files",
    description: "The files of the key's owner: what it has uploaded, and what its batches have made.",
    parameters: [
      optionalQuery("limit", "How many files a page has at most. Default 20. Values above 100 count as 100."),
      optionalQuery("order", "`desc`, the latest first, or `asc`."),
      optionalQuery("after", "The id of the last file of the page before."),
      optionalQuery("purpose", "Lists only files of this purpose.")
    ],
    responses: {
      200: {
        description: "A page of files",
        content: json(ref("FileList"), {
          example: { object: "list", data: [example], first_id: id, last_id: id, has_more: false }
        })
      }
    },
    errors: [...Errors.of.keys, ...Errors.of.itemPages, ...Errors.of.all]
  },
  {
    ...shared,
    method: "get",
    operationId: "files.get",
    summary: "Get a file",
    description: "What the file is. Its content is at `/v1/files/{file_id}/content`.",
    responses: { 200: { description: "The file", content: json(ref("File"), { example }) } }
  },
  {
    ...shared,
    method: "delete",
    operationId: "files.delete",
    summary: "Delete a file",
    description: "Deletes the file with its content.",
    responses: {
      200: {
        description: "The file no longer exists",
        content: json(ref("DeletedFile"), { example: { id, object: "file", deleted: true } })
      }
    }
  },
  {
    ...shared,
    method: "get",
    path: `${shared.path}/content`,
    operationId: "files.content",
    summary: "Download a file",
    description: "The content, or the part of it that `range` asks for.",
    parameters: [...shared.parameters, Headers.request("range"), Headers.request("if-range")],
    responses: {
      200: { description: "The content", content: binary(["application/jsonl"]) },
      206: { description: "The part of the content", content: binary(["application/jsonl"]) }
    },
    errors: [...shared.errors, ...Errors.of.ranges]
  }
]
