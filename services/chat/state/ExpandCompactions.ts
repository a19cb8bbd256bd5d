/**
 * Replaces a compaction made by this gateway with a system message of its summary, before an engine or a provider sees the
 * request. Leaves compactions of other services to their providers.
 */
import { Effect, Option, Predicate, Schema } from "effect"
import { chatCompletions, KeptMessage } from "../../../shared/contract/operations/ChatCompletions.ts"
import { compaction } from "../../../shared/contract/operations/Compaction.ts"
import { responses } from "../../../shared/contract/operations/Responses.ts"
import { responsesCount } from "../../../shared/contract/operations/TokenCounts.ts"
import { InvalidRequest, type JobError } from "../../../shared/contract/JobError.ts"
import { toMessage } from "../../../shared/provider/dialects/openai/ChatCompletionsRequest.ts"
import * as JsonText from "../../../shared/provider/json/JsonText.ts"
import type { Work } from "../../../shared/worker/JobLife.ts"
import type { Compactions } from "./Compactions.ts"
import { isSealedText } from "../../../shared/records/Seal.ts"

/** The form of a conversation in the requests of an operation. */
interface Format {
  readonly field: string
  /** Bytes of which a body contains at least one if it needs a change. */
  readonly marks: ReadonlyArray<Buffer>
  /** Makes a system message. */
  readonly system: (text: string) => unknown
  /** Converts any other item to the form that providers know. */
  readonly plain: (item: unknown) => unknown
}

const sealedMark = Buffer.from("\"compaction\"")
const decodeKept = Schema.decodeUnknownOption(KeptMessage)

const items: Format = {
  field: "input",
  marks: [sealedMark],
  system: (text: string) => ({ type: "message", role: "system", content: [{ type: "input_text", text }] }),
  plain: (item: unknown) => item
}

const formats: ReadonlyMap<string, Format> = new Map([
  [chatCompletions.name, {
    field: "messages",
    marks: [sealedMark, Buffer.from("\"message\"")],
    system: (text: string) => ({ role: "system", content: text }),
    plain: (item: unknown) => Option.match(decodeKept(item), { onNone: () => item, onSome: toMessage })
  }],
  [compaction.name, items],
  [responses.name, items],
  [responsesCount.name, items]
])

/** Converts the item at `path`: one sealed by this gateway to a system message of its summary. */
const expand = (
  format: Format,
  unseal: (sealed: string) => Option.Option<string>,
  item: unknown,
  path: string
): Effect.Effect<unknown, InvalidRequest> => {
  const isCompaction = Predicate.isReadonlyObject(item) && item["type"] === "compaction"
  const sealed = isCompaction ? item["encrypted_content"] : undefined
  if (typeof sealed !== "string" || !isSealedText(sealed)) return Effect.succeed(format.plain(item))
  const param = `${path}.encrypted_content`
  return Effect.mapBoth(Effect.fromOption(unseal(sealed)), {
    onFailure: () => InvalidRequest.at(param, "was changed, or made for another API key", "invalid_compaction"),
    onSuccess: format.system
  })
}

const expandIn = Effect.fnUntraced(function*(
  compactions: Compactions["Service"],
  work: Work,
  format: Format
): Effect.fn.Return<Work, JobError> {
  const { body } = work
  const unseal = (sealed: string) => compactions.open(work, sealed)
  const expandAll = (items: ReadonlyArray<unknown>) =>
    Effect.forEach(items, (item, index) => expand(format, unseal, item, `${format.field}[${index}]`))
  const members = JsonText.members(body) ?? []
  const given = JsonText.valueOf(body, members, format.field)
  const changes = new Map<string, unknown>()
  if (Array.isArray(given)) {
    const items = yield* expandAll(given)
    if (items.some((item, index) => item !== given[index])) changes.set(format.field, items)
  }
  return changes.size === 0 ? work : { ...work, body: JsonText.setMembers(body, members, changes) }
})

/** Expands a request's compactions. Most requests contain no mark and stay as they are. */
export const prepare = (compactions: Compactions["Service"], work: Work): Effect.Effect<Work, JobError> => {
  const { body: { buffer, byteLength, byteOffset }, operation } = work
  const body = Buffer.from(buffer, byteOffset, byteLength)
  const format = formats.get(operation.name)
  return format === undefined || !format.marks.some((mark) => body.includes(mark))
    ? Effect.succeed(work)
    : expandIn(compactions, work, format)
}
