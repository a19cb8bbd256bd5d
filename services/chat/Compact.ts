/** Compacts a conversation: keeps the user's messages and seals a summary of everything. */
import { Clock, Effect } from "effect"
import { randomUUID } from "node:crypto"
import type { CompactedResponse, Content, InputItem } from "../../shared/contract/operations/Compaction.ts"
import * as Contract from "../../shared/contract/operations/Compaction.ts"
import type { CompactionItem } from "../../shared/contract/CompactionItem.ts"
import { type JobError, ReferenceNotFound } from "../../shared/contract/JobError.ts"
import type { Usage } from "../../shared/contract/Usage.ts"
import { toCompactionUsage } from "../../shared/provider/dialects/openai/OpenAiUsage.ts"
import { newResponseId } from "../../shared/contract/ResponseId.ts"
import { lostIn } from "../../shared/provider/dialects/conversation/Losses.ts"
import { fatesOf } from "../../shared/provider/dialects/conversation/SchemaFates.ts"
import * as PaidParts from "../../shared/provider/call/PaidParts.ts"
import { reader } from "../../shared/provider/call/RequestBody.ts"
import type { Call, Perform } from "../../shared/provider/call/Protocol.ts"
import * as TranslationWarnings from "../../shared/provider/call/TranslationWarnings.ts"
import type { Compactions } from "./state/Compactions.ts"
import type { Source, Summarise } from "./Summary.ts"

export interface Compacted {
  readonly output: ReadonlyArray<OutputItem>
  readonly usage: Usage
  readonly warnings: ReadonlyArray<string>
  /** The request's body. */
  readonly json: unknown
}

const read = reader(Contract.CompactionRequest)

const fates = fatesOf(Contract.CompactionRequest)

type OutputItem = CompactedResponse["output"][number]

/** `ExpandCompactions` has already expanded the gateway's own compactions. Those of other services are kept unchanged. */
export const compact = Effect.fnUntraced(function*(
  call: Call,
  summarise: Summarise,
  compactions: Compactions["Service"]
): Effect.fn.Return<Compacted, JobError> {
  const { json, request } = yield* read(call)
  const { previous_response_id: previous } = request
  // ids of the gateway's own compactions are already resolved
  if (typeof previous === "string" && previous !== "") {
    return yield* new ReferenceNotFound({ param: "previous_response_id" })
  }
  const items: ReadonlyArray<InputItem> = typeof request.input === "string"
    ? [{ role: "user", content: request.input }]
    : request.input ?? []
  const sources = items.flatMap(toSources).filter(({ text }) => text !== "")
  const { text, usage } = yield* summarise(call, sources, request.instructions ?? "")
  const sealed = compactions.seal(call, text)
  return {
    output: [...items.flatMap(toKept), { id: newId("cmp"), type: "compaction", encrypted_content: sealed }],
    usage,
    warnings: unread(items),
    json
  }
})

export const make = (compactions: Compactions["Service"], summarise: Summarise): Perform =>
  Effect.fnUntraced(function*(call, sink) {
    const { json, output, usage, warnings } = yield* compact(call, summarise, compactions)
    const id = newResponseId()
    yield* PaidParts.after(call, usage, compactions.keep(call, id, output))
    const response: CompactedResponse = {
      id,
      object: "response.compaction",
      created_at: Math.floor((yield* Clock.currentTimeMillis) / 1_000),
      output,
      usage: toCompactionUsage(usage),
      error: null
    }
    sink.start({
      status: 200,
      contentType: "application/json",
      headers: TranslationWarnings.toHeaders([...warnings, ...lostIn(json, fates)])
    })
    sink.write(Buffer.from(JSON.stringify(response)))
    return usage
  })

const newId = (prefix: string): string => `${prefix}_${randomUUID().replaceAll("-", "")}`

const isMessage = (item: InputItem): item is Contract.MessageItem => "role" in item
const isCall = (item: InputItem): item is Contract.FunctionCallItem => item.type === "function_call"
const isCallOutput = (item: InputItem): item is Contract.FunctionCallOutputItem => item.type === "function_call_output"
const isSealed = (item: InputItem): item is CompactionItem => item.type === "compaction"

const textOf = (content: Content | null | undefined): string =>
  (typeof content === "string" ? [content] : content ?? []).flatMap((part) => {
    const text = typeof part === "string" ? part : "refusal" in part ? part.refusal : "text" in part ? part.text : ""
    return typeof text === "string" ? [text.toWellFormed()] : []
  }).join("\n")

const originOf = ({ role }: Contract.MessageItem): Source["origin"] =>
  role === "system" || role === "developer" ? "instructions" : role

/** What an item says. May be empty. */
const toSources = (item: InputItem): ReadonlyArray<Source> => {
  if (isCall(item)) return [describeCall(item.name, item.arguments)]
  if (isCallOutput(item)) return [{ text: textOf(item.output), origin: "tool" }]
  if (!isMessage(item)) return []
  const calls = (item.tool_calls ?? []).map((call) =>
    call.type === "function"
      ? describeCall(call.function.name, call.function.arguments)
      : describeCall(call.custom.name, call.custom.input)
  )
  return [{ text: textOf(item.content), origin: originOf(item) }, ...calls]
}

const describeCall = (name: string, json: string): Source => ({
  text: `The assistant called ${name}${json === "" || json === "{}" ? "" : ` with ${json}`}.`.toWellFormed(),
  origin: "tool"
})

/** The user's messages, and compactions of other services. */
const toKept = (item: InputItem): ReadonlyArray<OutputItem> => {
  if (isSealed(item)) return [item]
  if (!isMessage(item) || item.role !== "user") return []
  const { content } = item
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : content ?? []
  const kept = parts.map((part) => part.type === "text" ? { ...part, type: "input_text" } : part)
  return [{ id: item.id ?? newId("msg"), type: "message", role: "user", status: "completed", content: kept }]
}

/** The parts that hold no text. */
const unreadIn = (content: Content | null | undefined, path: string): ReadonlyArray<string> =>
  typeof content === "string" ?
    [] :
    (content ?? []).flatMap((part, index) =>
      "text" in part || "refusal" in part ? [] : [`${path}[${index}] is of a type that is not summarised`]
    )

/** The items and parts left out of the summary. User messages are kept whole. */
const unread = (items: ReadonlyArray<InputItem>): ReadonlyArray<string> =>
  items.flatMap((item, index) => {
    if (isMessage(item)) return item.role === "user" ? [] : unreadIn(item.content, `input[${index}].content`)
    if (isCallOutput(item)) return unreadIn(item.output, `input[${index}].output`)
    if (isCall(item)) return []
    return [
      `input[${index}] ${isSealed(item) ? "was sealed by another service" : "is of a type that is not summarised"}`
    ]
  })
