/**
 * Replaces references of a request in the responses format to stored responses and items by what they refer to: providers always
 * get the whole conversation.
 */
import { Effect, Option, Predicate } from "effect"
import { InvalidRequest, type JobError, ReferenceNotFound, Unavailable } from "../../../shared/contract/JobError.ts"
import type { Owner } from "../../../shared/contract/Owner.ts"
import * as Json from "../../../shared/provider/json/Json.ts"
import * as JsonText from "../../../shared/provider/json/JsonText.ts"
import {
  type Conversation,
  conversationOf,
  idOf,
  itemsIn,
  joinItems,
  type Responses
} from "../../../shared/records/Responses.ts"
import type { Work } from "../../../shared/worker/JobLife.ts"
import type { Compactions } from "./Compactions.ts"

export interface Stores {
  readonly responses: Responses["Service"]
  readonly compactions: Compactions["Service"]
}

export interface Resolved {
  readonly work: Work
  /** The request's own items, as JSON texts with commas between them. */
  readonly own: Uint8Array
  /** `undefined` if the request names no earlier response, or none that exists. */
  readonly conversation: Conversation | undefined
}

/** The same as of a request. */
const maxBytes = 32 * 1024 * 1024

export const unavailable = () => new Unavailable({ retryAfterMs: 1_000 })

const marks = ["\"item_reference\"", "\"reasoning\""].map((mark) => Buffer.from(mark))

/** Neither empty nor a list of empty texts. */
const hasText = (parts: unknown): boolean =>
  Array.isArray(parts) && parts.some((part) => Predicate.isReadonlyObject(part) && (part["text"] ?? "") !== "")

/** The id of the stored item that this item stands for: a reference, or reasoning that lacks its content. */
const referenceOf = (item: unknown): string | undefined => {
  if (!Predicate.isReadonlyObject(item)) return undefined
  const { content, encrypted_content: encrypted, summary, type } = item
  const isHollow = type === "reasoning" && (encrypted ?? "") === "" && !hasText(summary) && !hasText(content)
  return isHollow || type === "item_reference" ? idOf(item) : undefined
}

const asItem = (text: string): Uint8Array => Buffer.from(JSON.stringify({ role: "user", content: text }))

const find = Effect.fnUntraced(function*(
  { compactions, responses }: Stores,
  work: Work,
  id: string
): Effect.fn.Return<Conversation | undefined, JobError> {
  const { owner } = work
  if (owner !== undefined) {
    const record = yield* responses.find(owner, id).pipe(Effect.mapError(unavailable))
    if (Option.isSome(record)) {
      const earlier = yield* responses.findEarlier(owner, record.value).pipe(Effect.mapError(unavailable))
      return Option.getOrUndefined(Option.map(earlier, (earlier) => conversationOf(record.value, earlier)))
    }
  }
  const compacted = Option.getOrUndefined(yield* compactions.find(work, id))
  return compacted === undefined
    ? undefined
    : { ancestors: [], items: Buffer.from(JSON.stringify(compacted).slice(1, -1)) }
})

/** The request's own items, complete. Leaves out references to items that the conversation has already. */
const complete = Effect.fnUntraced(function*(
  { responses }: Stores,
  owner: Owner,
  items: ReadonlyArray<Uint8Array>,
  conversation: Conversation | undefined
): Effect.fn.Return<ReadonlyArray<Uint8Array>, JobError> {
  const references = items.map((item) =>
    marks.some((mark) => Buffer.from(item).includes(mark)) ? referenceOf(Json.parse(Json.decodeText(item))) : undefined
  )
  const ids = references.filter((id) => id !== undefined)
  if (ids.length === 0) return items
  const known = new Set((conversation === undefined ? [] : itemsIn(conversation.items)).map(idOf))
  const found = yield* responses.findItems(owner, ids.filter((id) => !known.has(id))).pipe(
    Effect.mapError(unavailable)
  )
  return yield* Effect.forEach(items, (item, index) => {
    const id = references[index]
    if (id === undefined) return Effect.succeed([item])
    if (known.has(id)) return Effect.succeed([])
    const stored = found.get(id)
    return stored === undefined
      ? Effect.fail(new ReferenceNotFound({ param: `input[${index}].id` }))
      : Effect.succeed([Buffer.from(JSON.stringify(stored))])
  }).pipe(Effect.map((lists) => lists.flat()))
})

const noItems = new Uint8Array(0)

export const resolve = Effect.fnUntraced(function*(stores: Stores, work: Work): Effect.fn.Return<Resolved, JobError> {
  const { body, owner } = work
  const members = JsonText.members(body) ?? []
  const input = members.findLast(({ name }) => name === "input")
  const text = input === undefined ? undefined : JsonText.valueOf(body, members, "input")
  const given = typeof text === "string" ? [asItem(text)] : input === undefined ? [] : [...JsonText.items(body, input)]
  const previous = JsonText.valueOf(body, members, "previous_response_id")
  const conversation = typeof previous === "string" && previous !== "" ? yield* find(stores, work, previous) : undefined
  const items = owner === undefined ? given : yield* complete(stores, owner, given, conversation)
  const own = joinItems(items)
  if (conversation === undefined && items === given) return { work, own, conversation }
  const whole = joinItems([conversation?.items ?? noItems, own])
  if (whole.length > maxBytes) {
    const problem = `the conversation is larger than ${maxBytes / 1024 / 1024} MiB`
    return yield* InvalidRequest.at("previous_response_id", problem, "context_length_exceeded")
  }
  const list = Buffer.concat([Buffer.from("["), whole, Buffer.from("]")])
  return { work: { ...work, body: JsonText.setMembers(body, members, new Map([["input", list]])) }, own, conversation }
})
