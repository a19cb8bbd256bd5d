/** The reference of the routes of stored responses. */
import { Schema } from "effect"
import { constant, field, JsonObject } from "../../../shared/contract/Fields.ts"
import * as Errors from "./Errors.ts"
import { optionalQuery, parameter, type Route } from "./Route.ts"
import { events, json, ref } from "./Schemas.ts"

const StoredResponse = Schema.Struct({
  id: field(Schema.String, "Unique per response."),
  object: constant("response", "A response."),
  status: field(
    Schema.Literals(["completed", "incomplete", "queued", "in_progress", "failed", "cancelled"]),
    "As in the answer; a response in the background can also have one of the last four."
  ),
  output: field(Schema.Array(JsonObject), "The items of the answer.")
})

const DeletedResponse = Schema.Struct({
  id: field(Schema.String, "The id of the response."),
  object: constant("response", "A response."),
  deleted: constant(true, "It no longer exists.")
})

const InputItems = Schema.Struct({
  object: constant("list", "A list of items."),
  data: field(Schema.Array(JsonObject), "Items as the requests had them. Those without an id get one."),
  first_id: field(Schema.NullOr(Schema.String), "The id of the first item."),
  last_id: field(Schema.NullOr(Schema.String), "The id of the last item: `after` for the next page."),
  has_more: field(Schema.Boolean, "Whether there is another page.")
})

export const schemas = { StoredResponse, DeletedResponse, InputItems }

const id = "resp_0d0bd8f1c1f64e2b8a8ac3bb6ff6ba05"
const message = {
  id: "item_0d0bd8f1c1f64e2b8a8ac3bb6ff6ba05_0",
  type: "message",
  role: "user",
  status: "completed",
  content: [{ type: "input_text", text: "Say hello." }]
}
const output = [{ id: "msg_0d0bd8f1c1f64e2b8a8ac3bb6ff6ba050", type: "message", role: "assistant", content: [] }]

const responseParameter = {
  ...parameter("path", "response_id", "The `id` of a response that was stored."),
  example: id
}

const shared = {
  tag: "Chat",
  key: "openai",
  dialect: "openai",
  path: "/v1/responses/{response_id}",
  parameters: [responseParameter],
  errors: [...Errors.of.keys, ...Errors.of.storedResponses, ...Errors.of.all]
} as const

export const routes: ReadonlyArray<Route> = [
  {
    ...shared,
    method: "get",
    operationId: "responses.get",
    summary: "Get a stored response",
    description:
      "The response as it was answered, for 30 days or as long as the operator has set. One in the background " +
      "has a `status` of `queued` or `in_progress` until it is complete; if it fails or is cancelled, it is kept for a day.",
    parameters: [
      responseParameter,
      optionalQuery(
        "stream",
        "`true` for the events of a response in the background that was created with `stream`, while they are made or until an " +
          "hour after its end."
      ),
      optionalQuery(
        "starting_after",
        "With `stream`: the `sequence_number` of the last event that the client has. By default the stream has all events."
      )
    ],
    responses: {
      200: {
        description: "The response",
        content: {
          ...json(ref("StoredResponse"), { example: { id, object: "response", status: "completed", output } }),
          ...events
        }
      }
    },
    errors: [...shared.errors, ...Errors.of.responseReads, ...Errors.of.storedStreams, ...Errors.of.streamPositions]
  },
  {
    ...shared,
    method: "delete",
    operationId: "responses.delete",
    summary: "Delete a stored response",
    description:
      "Neither it nor the responses that continue it can be continued any more. Stops one in the background.",
    responses: {
      200: {
        description: "The response no longer exists",
        content: json(ref("DeletedResponse"), { example: { id, object: "response", deleted: true } })
      }
    }
  },
  {
    ...shared,
    method: "post",
    path: `${shared.path}/cancel`,
    operationId: "responses.cancel",
    summary: "Cancel a response in the background",
    description: "Stops the call to the provider. A response that has ended stays as it is.",
    responses: {
      200: {
        description: "The response",
        content: json(ref("StoredResponse"), { example: { id, object: "response", status: "cancelled", output: [] } })
      }
    },
    errors: [...shared.errors, ...Errors.of.responseReads, ...Errors.of.cancellations]
  },
  {
    ...shared,
    method: "get",
    path: `${shared.path}/input_items`,
    operationId: "responses.input_items",
    summary: "List the items that a response was made from",
    description: "The items of its request and of the conversation before.",
    parameters: [
      responseParameter,
      optionalQuery("limit", "How many items a page has at most. Default 20. Values above 100 count as 100."),
      optionalQuery("order", "`asc`, or `desc` for the latest first, which is the default."),
      optionalQuery("after", "The id of the last item of the page before.")
    ],
    responses: {
      200: {
        description: "A page of items",
        content: json(ref("InputItems"), {
          example: { object: "list", data: [message], first_id: message.id, last_id: message.id, has_more: false }
        })
      }
    },
    errors: [...shared.errors, ...Errors.of.responseReads, ...Errors.of.itemPages]
  }
]
