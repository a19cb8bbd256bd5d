/** The `anthropic` protocol: the Messages API. Its `baseUrl` has no `/v1`, as in the official client. */
import { Struct } from "effect"
import type { InvalidRequest } from "../../../contract/JobError.ts"
import { messages } from "../../../contract/operations/Messages.ts"
import { messagesCount, MessagesCountRequest } from "../../../contract/operations/TokenCounts.ts"
import { rulesOf } from "../../dialects/anthropic/ClaudeModels.ts"
import { messagesProvider } from "../../dialects/anthropic/MessagesProvider.ts"
import { moveToFront } from "./RelayedInstructions.ts"
import { refusedThread } from "./RelayedThread.ts"
import { type AnswerGrammar, anyOf, membersNamed, reasonNamed } from "../../exchange/AnswerGrammar.ts"
import type { HttpProtocol, Relayed } from "../../exchange/HttpProtocol.ts"
import { RelayedBody } from "../../exchange/RelayedBody.ts"
import * as FinishReasons from "../../dialects/finish/FinishReasons.ts"
import * as Json from "../../json/Json.ts"
import type { Call } from "../../call/Protocol.ts"
import type { Recipient } from "../../dialects/conversation/Signature.ts"
import { usageOf } from "../../dialects/anthropic/AnthropicUsage.ts"

const path = "/v1/messages"
const countPath = `${path}/count_tokens`

/** The fields that the counting of tokens accepts. Anthropic rejects all others. */
const counted = Struct.keys(MessagesCountRequest.fields)

/** The API version for requests whose client states none that Anthropic has: its versions are dates. */
const version = "2023-06-01"

const versionIn = (headers: NonNullable<Call["headers"]>): string => {
  const own = headers["vendor-version"] ?? ""
  return headers["anthropic-version"] ?? (/^\d{4}-\d{2}-\d{2}$/.test(own) ? own : version)
}

// Request

/** Whether the model is known to refuse messages of the role `system`. The provider judges the others. */
const refusesLaterSystem = ({ model, provider }: Call["endpoint"]): boolean =>
  (Json.fields(provider.options)["laterSystem"] ?? rulesOf(model)?.laterSystem) === false

const relay = (path: string) => (call: Call, recipient?: Recipient): Relayed | InvalidRequest => {
  const { contentType, headers = {}, operation: { isFree = false } } = call
  const body = new RelayedBody(call, recipient)
  const refusal = refusedThread(body, call.endpoint)
  if (refusal !== undefined) return refusal
  body.setModel()
  if (refusesLaterSystem(call.endpoint)) moveToFront(body)
  const betas = headers["anthropic-beta"]
  return {
    path,
    body: body.toBytes("messages", "anthropic"),
    contentType,
    headers: {
      "anthropic-version": versionIn(headers),
      ...(betas === undefined ? {} : { "anthropic-beta": betas })
    },
    streams: body.streams,
    noEstimate: isFree
  }
}

// Answer

const contentOf: AnswerGrammar["contentOf"] = ({ content_block: block, delta, type }) => {
  switch (type) {
    case "ping":
    case "message_start":
    case "message_stop":
    case "content_block_stop":
      return undefined
    case "content_block_start": {
      const { text = "", thinking = "", type: kind } = Json.fields(block)
      return text === "" && thinking === "" && (kind === "text" || kind === "thinking") ? undefined : "other"
    }
    case "content_block_delta":
      return Json.fields(delta)["type"] === "text_delta" ? "text" : "other"
    case "message_delta":
      return Json.fields(delta)["stop_reason"] === "tool_use" ? "other" : "text"
    default:
      return "other"
  }
}

const isStop = ({ type }: Json.Fields): boolean => type === "message_stop"

const grammar: AnswerGrammar = {
  done: "dropped",
  closing: {
    isIn: isStop,
    frame: Buffer.from("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
  },
  marks: anyOf(membersNamed("usage", "error"), reasonNamed("stop_reason"), /message_stop"/),
  modelPaths: [["message", "model"], ["model"]],
  read: ({ delta, message, stop_reason: stop, type, usage }, before) => {
    if (FinishReasons.isFailure(stop ?? Json.fields(delta)["stop_reason"])) return { isError: true }
    switch (type) {
      case "error":
        return { isError: true }
      case "message_start":
        return { usage: usageOf(Json.fields(message)["usage"], before) }
      default:
        return { usage: usageOf(usage, before) }
    }
  },
  isLast: (data) => isStop(data) || FinishReasons.reasonIn(Json.fields(data["delta"])["stop_reason"]) !== undefined,
  contentOf,
  damagedText: /"text_delta"/
}

export const anthropic: HttpProtocol<typeof messagesProvider.options.Type> = {
  authorize: (key) => ({ "x-api-key": key }),
  relays: new Map([[messages.name, relay(path)], [messagesCount.name, relay(countPath)]]),
  grammar,
  chat: {
    dialect: messagesProvider,
    path: () => path,
    headers: { "anthropic-version": version },
    count: { path: () => countPath, toBody: (request) => Struct.pick(request, counted), tokens: "input_tokens" }
  }
}
