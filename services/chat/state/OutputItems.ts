/**
 * Collects the items of a streamed response from its events, for servers whose last event has no output. Keeps the bytes of events, and reads
 * those of an item that has not ended only if the output is needed.
 */
import * as Json from "../../../shared/provider/json/Json.ts"
import * as JsonText from "../../../shared/provider/json/JsonText.ts"

/** The events before the end of an item that are kept: its start, and what adds to it. */
const additions =
  /^response\.(?:output_item\.added|(?:output_text|refusal|function_call_arguments|custom_tool_call_input)\.(?:delta|done))$/

type Part = "text" | "refusal" | "said"

interface OpenItem extends Record<Part, string> {
  readonly start: Json.Fields
}

const partOf = (type: string): Part => {
  if (type.startsWith("response.output_text")) return "text"
  return type.startsWith("response.refusal") ? "refusal" : "said"
}

export class OutputItems {
  readonly #maxBytes: number
  readonly #ended: Array<Uint8Array> = []
  /** The events since the last end of an item. */
  #open: Array<Uint8Array> = []
  #bytes = 0

  /** Without items if they exceed `maxBytes`. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Takes an event of this type. */
  push(type: unknown, data: Uint8Array): void {
    if (typeof type !== "string") return
    if (type === "response.output_item.done") {
      const item = JsonText.members(data)?.findLast(({ name }) => name === "item")
      if (item !== undefined) this.#keep(this.#ended, Uint8Array.from(JsonText.bytesOf(data, item)))
      this.#open = []
    } else if (additions.test(type)) this.#keep(this.#open, Uint8Array.from(data))
  }

  /** The items as JSON texts. */
  get items(): ReadonlyArray<Uint8Array> {
    return this.#bytes > this.#maxBytes ? [] : [...this.#ended, ...this.#unended()]
  }

  #keep(list: Array<Uint8Array>, bytes: Uint8Array): void {
    this.#bytes += bytes.length
    if (this.#bytes <= this.#maxBytes) list.push(bytes)
    else this.#ended.length = this.#open.length = 0
  }

  /** The items that have started and not ended, with what was said in them. */
  #unended(): ReadonlyArray<Uint8Array> {
    const items = new Map<unknown, OpenItem>()
    for (const data of this.#open) {
      const event = JsonText.parsed(data) ?? {}
      const { delta, item, item_id: id, output_index: index, type } = event
      if (type === "response.output_item.added") {
        items.set(index, { start: Json.fields(item), text: "", refusal: "", said: "" })
        continue
      }
      const part = partOf(String(type))
      // some servers send texts without the start of a message
      const open = items.get(index) ?? (part === "said" ? undefined : emptyMessage(id))
      if (open === undefined) continue
      items.set(index, open)
      open[part] += Json.string(delta) ?? ""
      // the whole at its end, from servers that send no deltas
      open[part] ||= Json.string(event["text"] ?? event["refusal"] ?? event["arguments"] ?? event["input"]) ?? ""
    }
    return [...items.values()].flatMap((open) => {
      const item = wholeOf(open)
      return item === undefined ? [] : [Buffer.from(JSON.stringify(item))]
    })
  }
}

const emptyMessage = (id: unknown): OpenItem => ({
  start: { ...(typeof id === "string" ? { id } : {}), type: "message", role: "assistant" },
  text: "",
  refusal: "",
  said: ""
})

/** The item as its end would have it; `undefined` if nothing was said. */
const wholeOf = ({ refusal, said, start, text }: OpenItem): object | undefined => {
  const whole = { ...start, status: "completed" }
  switch (start["type"]) {
    case "message":
      return text + refusal === "" ? undefined : {
        ...whole,
        content: [
          ...(text === "" ? [] : [{ type: "output_text", text, annotations: [] }]),
          ...(refusal === "" ? [] : [{ type: "refusal", refusal }])
        ]
      }
    case "function_call":
      return { ...whole, arguments: said }
    case "custom_tool_call":
      return { ...whole, input: said }
    default:
      return undefined
  }
}
