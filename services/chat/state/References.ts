/**
 * Replaces a request's references to stored responses and items with their content, because providers always get the whole
 * conversation.
 */
import { Effect, Option, Predicate } from "effect"
import type { Member } from "../../../shared/bounds/JsonMembers.ts"
import { InvalidRequest, type JobError, orUnavailable, ReferenceNotFound } from "../../../shared/contract/JobError.ts"
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

/** A request in the responses format. */
export interface Request {
  readonly work: Work
  /** The members of its body. */
  readonly members: ReadonlyArray<Member>
}

export const read = (work: Work): Request => ({ work, members: JsonText.members(work.body) ?? [] })

export const valueOf = ({ members, work }: Request, name: string): unknown => JsonText.valueOf(work.body, members, name)

/** The request with other values of these members. */
export const change = ({ members, work }: Request, changes: ReadonlyMap<string, unknown>): Work =>
  changes.size === 0 ? work : { ...work, body: JsonText.setMembers(work.body, members, changes) }

export interface Resolved {
  /** New values of the members that change when the references are replaced. */
  readonly changes: ReadonlyMap<string, unknown>
  /** The id of the earlier response that the request names. */
  readonly previous: string | null
  /** The request's own items, as JSON texts with commas between them. */
  readonly own: Uint8Array
  /** `undefined` if the request names no earlier response, or none that exists. */
  readonly conversation: Conversation | undefined
}

/** Maximum size of a conversation: that of a request. */
const maxBytes = 32 * 1024 * 1024

const marks = ["\"item_reference\"", "\"reasoning\""].map((mark) => Buffer.from(mark))

/** Whether a part has a text. */
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
    const record = yield* orUnavailable(responses.find(owner, id))
    if (Option.isSome(record)) {
      const earlier = yield* orUnavailable(responses.findEarlier(owner, record.value))
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
  const found = yield* orUnavailable(responses.findItems(owner, ids.filter((id) => !known.has(id))))
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

/** The bytes of each item of the input. */
const itemsOf = ({ members, work: { body } }: Request): ReadonlyArray<Uint8Array> => {
  const input = members.findLast(({ name }) => name === "input")
  if (input === undefined) return []
  const isText = JsonText.bytesOf(body, input)[0] === quote
  return isText ? [asItem(String(JsonText.valueOf(body, [input], "input")))] : [...JsonText.items(body, input)]
}

const quote = 0x22

export const resolve = Effect.fnUntraced(function*(
  stores: Stores,
  request: Request
): Effect.fn.Return<Resolved, JobError> {
  const { work } = request
  const { owner } = work
  const given = itemsOf(request)
  const previous = Json.string(valueOf(request, "previous_response_id")) || null
  const conversation = previous === null ? undefined : yield* find(stores, work, previous)
  const items = owner === undefined ? given : yield* complete(stores, owner, given, conversation)
  const own = joinItems(items)
  if (conversation === undefined && items === given) return { changes: noChanges, previous, own, conversation }
  const whole = joinItems([conversation?.items ?? noItems, own])
  if (whole.length > maxBytes) {
    const problem = `the conversation is larger than ${maxBytes / 1024 / 1024} MiB`
    return yield* InvalidRequest.at("previous_response_id", problem, "context_length_exceeded")
  }
  const changes = new Map<string, unknown>([["input", Buffer.concat([Buffer.from("["), whole, Buffer.from("]")])]])
  // an id that the gateway does not know stays: the provider may know it
  if (conversation !== undefined) changes.set("previous_response_id", null)
  return { changes, previous, own, conversation }
})

const noChanges: ReadonlyMap<string, unknown> = new Map()

/** Resolves the references of a request; fails if it continues a response that does not exist. */
export const resolveAll = Effect.fnUntraced(function*(
  stores: Stores,
  request: Request
): Effect.fn.Return<Resolved, JobError> {
  const resolved = yield* resolve(stores, request)
  if (resolved.previous === null || resolved.conversation !== undefined) return resolved
  const problem = "not found, expired, or owned by another API key"
  return yield* InvalidRequest.at("previous_response_id", problem, "previous_response_not_found")
})
