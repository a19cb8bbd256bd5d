/** The reference of `/v1/batches` and `/v1/messages/batches`. */
import { Schema } from "effect"
import { Mistake } from "../../../shared/batches/BatchRecord.ts"
import { constant, EpochSeconds, field, JsonObject } from "../../../shared/contract/Fields.ts"
import { maxEndpointLength } from "../owned/batches/BatchBodies.ts"
import * as Errors from "./Errors.ts"
import * as Headers from "./Headers.ts"
import { optionalQuery, parameter, type Route } from "./Route.ts"
import { binary, json, ref } from "./Schemas.ts"

const moment = (description: string) => field(Schema.NullOr(EpochSeconds), description)
const count = (description: string) => field(Schema.Int, description)

const NewBatch = Schema.Struct({
  input_file_id: field(Schema.String, "The id of a file of the purpose `batch`."),
  endpoint: field(
    Schema.String.check(Schema.isMaxLength(maxEndpointLength)),
    "The path of its requests, such as `/v1/chat/completions`: any that takes and gives JSON."
  ),
  completion_window: constant("24h", "The time after which requests without an answer fail."),
  metadata: Schema.optionalKey(field(Schema.NullOr(JsonObject), "Up to 16 texts of your own, by their names."))
})

const Batch = Schema.Struct({
  id: field(Schema.String, "Unique per batch."),
  object: constant("batch", "A batch."),
  endpoint: field(Schema.String, "The path of its requests."),
  errors: field(
    Schema.NullOr(Schema.Struct({
      object: constant("list", "A list."),
      data: field(
        Schema.Array(Schema.Struct({
          code: field(Mistake.fields.code, "The kind of mistake."),
          message: field(Mistake.fields.message, "What is wrong."),
          line: field(Mistake.fields.line, "The line of the file, from 1."),
          param: field(Mistake.fields.param, "The field of that line.")
        })),
        "The first 100 mistakes."
      )
    })),
    "Why the batch has failed."
  ),
  input_file_id: field(Schema.String, "The file with its requests."),
  completion_window: field(Schema.String, "As requested."),
  status: field(
    Schema.Literals([
      ...["validating", "failed", "in_progress", "finalizing", "completed"] as const,
      ...["expired", "cancelling", "cancelled"] as const
    ]),
    "A batch ends as `completed`, `failed`, `expired` or `cancelled`."
  ),
  output_file_id: field(Schema.NullOr(Schema.String), "The file with the answers, if there are any."),
  error_file_id: field(Schema.NullOr(Schema.String), "The file with the requests that have failed, if there are any."),
  created_at: field(EpochSeconds, "When it was created."),
  in_progress_at: moment("When its first request started."),
  expires_at: moment("When requests without an answer fail."),
  finalizing_at: moment("When its last request ended."),
  completed_at: moment("When it ended as `completed`."),
  failed_at: moment("When it ended as `failed`."),
  expired_at: moment("When it ended as `expired`."),
  cancelling_at: moment("When it was cancelled."),
  cancelled_at: moment("When it ended as `cancelled`."),
  request_counts: field(
    Schema.Struct({
      total: count("All requests."),
      completed: count("Those with an answer."),
      failed: count("Those that have failed.")
    }),
    "How many requests it has."
  ),
  metadata: field(Schema.NullOr(JsonObject), "As requested.")
})

const BatchList = Schema.Struct({
  object: constant("list", "A list of batches."),
  data: field(Schema.Array(Batch), "The latest first."),
  first_id: field(Schema.NullOr(Schema.String), "The id of the first batch."),
  last_id: field(Schema.NullOr(Schema.String), "The id of the last batch: `after` for the next page."),
  has_more: field(Schema.Boolean, "Whether there is another page.")
})

const NewMessageBatch = Schema.Struct({
  requests: field(
    Schema.Array(Schema.Struct({
      custom_id: field(Schema.String, "Unique in the batch, 1 to 512 characters."),
      params: field(JsonObject, "A request for a message, without `stream`.")
    })),
    "Up to 50,000 requests."
  )
})

const text = (description: string) => field(Schema.NullOr(Schema.String), description)

const MessageBatch = Schema.Struct({
  id: field(Schema.String, "Unique per batch: as of `/v1/batches`, with the prefix `msgbatch_`."),
  type: constant("message_batch", "A batch of messages."),
  processing_status: field(Schema.Literals(["in_progress", "canceling", "ended"]), "Whether it has ended."),
  request_counts: field(
    Schema.Struct({
      processing: count("All requests until the batch has ended, then 0."),
      succeeded: count("Those with a message."),
      errored: count("Those that have failed."),
      canceled: count("Those that were not finished before the batch was cancelled."),
      expired: count("Those that were not finished in time.")
    }),
    "How many requests it has."
  ),
  created_at: text("When it was created."),
  expires_at: text("When requests without an answer expire."),
  ended_at: text("When it ended."),
  cancel_initiated_at: text("When it was cancelled."),
  archived_at: text("Always `null`."),
  results_url: text("The path of the results, once it has ended.")
})

const MessageBatchList = Schema.Struct({
  data: field(Schema.Array(MessageBatch), "The latest first."),
  first_id: field(Schema.NullOr(Schema.String), "The id of the first batch: `before_id` for the page before."),
  last_id: field(Schema.NullOr(Schema.String), "The id of the last batch: `after_id` for the next page."),
  has_more: field(Schema.Boolean, "Whether there is another page.")
})

const DeletedMessageBatch = Schema.Struct({
  id: field(Schema.String, "The id of the batch."),
  type: constant("message_batch_deleted", "It no longer exists.")
})

export const schemas = {
  NewBatch,
  Batch,
  BatchList,
  NewMessageBatch,
  MessageBatch,
  MessageBatchList,
  DeletedMessageBatch
}

const suffix = "019b0a1f3c5e6d2f7a8b9c0d1e2f3a4b"
const id = `batch_${suffix}`
const example = {
  id,
  object: "batch",
  endpoint: "/v1/chat/completions",
  errors: null,
  input_file_id: `file-${suffix}`,
  completion_window: "24h",
  status: "completed",
  output_file_id: `file-${suffix.replace("019b", "019c")}`,
  error_file_id: null,
  created_at: 1_760_000_000,
  in_progress_at: 1_760_000_001,
  expires_at: 1_760_086_400,
  finalizing_at: 1_760_000_040,
  completed_at: 1_760_000_042,
  failed_at: null,
  expired_at: null,
  cancelling_at: null,
  cancelled_at: null,
  request_counts: { total: 100, completed: 100, failed: 0 },
  metadata: null
}

const messageId = `msgbatch_${suffix}`
const messageExample = {
  id: messageId,
  type: "message_batch",
  processing_status: "ended",
  request_counts: { processing: 0, succeeded: 100, errored: 0, canceled: 0, expired: 0 },
  created_at: "2025-10-09T08:53:20.000Z",
  expires_at: "2025-10-10T08:53:20.000Z",
  ended_at: "2025-10-09T08:54:02.000Z",
  cancel_initiated_at: null,
  archived_at: null,
  results_url: `/v1/messages/batches/${messageId}/results`
}

const shared = {
  tag: "Batches",
  key: "openai",
  dialect: "openai",
  path: "/v1/batches/{batch_id}",
  parameters: [{ ...parameter("path", "batch_id", "The batch's `id`."), example: id }],
  errors: [...Errors.of.keys, ...Errors.of.batches, ...Errors.of.all]
} as const

const ofMessages = {
  tag: "Batches",
  key: "anthropic",
  dialect: "anthropic",
  path: "/v1/messages/batches/{message_batch_id}",
  parameters: [{ ...parameter("path", "message_batch_id", "The batch's `id`."), example: messageId }],
  errors: [...Errors.of.keys, ...Errors.of.messageBatches, ...Errors.of.all]
} as const

const one = { 200: { description: "The batch", content: json(ref("Batch"), { example }) } }
const oneOfMessages = {
  200: { description: "The batch", content: json(ref("MessageBatch"), { example: messageExample }) }
}
const limit = optionalQuery("limit", "How many batches a page has at most. Default 20. Values above 100 count as 100.")

export const routes: ReadonlyArray<Route> = [
  {
    ...shared,
    method: "post",
    path: "/v1/batches",
    operationId: "batches.create",
    summary: "Create a batch",
    description:
      "Performs the requests of a file when there is capacity, within a day, and gives their answers as files. Each " +
      "request has one result, and is paid for once. Its lines count towards the key's tokens and budget when they run, and " +
      "towards no limit of requests: the key's `batchConcurrency` bounds how many run concurrently.",
    parameters: [Headers.request("idempotency-key")],
    body: {
      required: true,
      content: json(ref("NewBatch"), {
        example: { input_file_id: example.input_file_id, endpoint: example.endpoint, completion_window: "24h" }
      })
    },
    headers: { ...Headers.of.limits, ...Headers.named(["idempotency-replayed"]) },
    responses: one,
    errors: [...Errors.of.keys, ...Errors.of.idempotencyKeys, ...Errors.of.newBatches, ...Errors.of.all]
  },
  {
    ...shared,
    method: "get",
    path: "/v1/batches",
    operationId: "batches.list",
    summary: "List batches",
    description: "The batches of the key's owner.",
    parameters: [limit, optionalQuery("after", "The id of the last batch of the page before.")],
    responses: {
      200: {
        description: "A page of batches",
        content: json(ref("BatchList"), {
          example: { object: "list", data: [example], first_id: id, last_id: id, has_more: false }
        })
      }
    },
    errors: [...Errors.of.keys, ...Errors.of.itemPages, ...Errors.of.all]
  },
  {
    ...shared,
    method: "get",
    operationId: "batches.get",
    summary: "Get a batch",
    description: "Its status, how many of its requests have ended, and its files.",
    responses: one
  },
  {
    ...shared,
    method: "post",
    path: `${shared.path}/cancel`,
    operationId: "batches.cancel",
    summary: "Cancel a batch",
    description: "Stops its requests. What has an answer stays, and is in its files once its status is `cancelled`.",
    responses: one
  },
  {
    ...ofMessages,
    method: "post",
    path: "/v1/messages/batches",
    operationId: "messages.batches.create",
    summary: "Create a batch of messages",
    description:
      "A batch in Anthropic's form: the requests come in the body, of up to 32 MiB. It is the same as a batch of " +
      "`/v1/messages`, and is also listed there.",
    parameters: [Headers.request("idempotency-key")],
    body: {
      required: true,
      content: json(ref("NewMessageBatch"), {
        example: {
          requests: [{
            custom_id: "first",
            params: { model: "claude-opus-4-5", max_tokens: 1_000, messages: [{ role: "user", content: "Hello" }] }
          }]
        }
      })
    },
    headers: { ...Headers.of.limits, ...Headers.named(["idempotency-replayed"]) },
    responses: oneOfMessages,
    errors: [...Errors.of.keys, ...Errors.of.idempotencyKeys, ...Errors.of.newMessageBatches, ...Errors.of.all]
  },
  {
    ...ofMessages,
    method: "get",
    path: "/v1/messages/batches",
    operationId: "messages.batches.list",
    summary: "List batches of messages",
    description: "The batches of messages of the key's owner.",
    parameters: [
      limit,
      optionalQuery("after_id", "The id of the last batch of the page before."),
      optionalQuery("before_id", "The id of the first batch of the page after.")
    ],
    responses: {
      200: {
        description: "A page of batches",
        content: json(ref("MessageBatchList"), {
          example: { data: [messageExample], first_id: messageId, last_id: messageId, has_more: false }
        })
      }
    },
    errors: [...Errors.of.keys, ...Errors.of.itemPages, ...Errors.of.all]
  },
  {
    ...ofMessages,
    method: "get",
    operationId: "messages.batches.get",
    summary: "Get a batch of messages",
    description: "Its status, how many of its requests have ended, and the path of its results.",
    responses: oneOfMessages
  },
  {
    ...ofMessages,
    method: "delete",
    operationId: "messages.batches.delete",
    summary: "Delete a batch of messages",
    description: "Deletes a batch that has ended, with its requests and results.",
    responses: {
      200: {
        description: "The batch no longer exists",
        content: json(ref("DeletedMessageBatch"), { example: { id: messageId, type: "message_batch_deleted" } })
      }
    }
  },
  {
    ...ofMessages,
    method: "post",
    path: `${ofMessages.path}/cancel`,
    operationId: "messages.batches.cancel",
    summary: "Cancel a batch of messages",
    description: "Stops its requests. What has an answer stays.",
    responses: oneOfMessages
  },
  {
    ...ofMessages,
    method: "get",
    path: `${ofMessages.path}/results`,
    operationId: "messages.batches.results",
    summary: "Get the results of a batch of messages",
    description: "A result on each line, in any order.",
    responses: { 200: { description: "The results", content: binary(["application/x-jsonl"]) } }
  }
]
