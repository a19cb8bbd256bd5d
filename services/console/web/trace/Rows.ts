/** Converts the spans of a trace to rows for the waterfall and the table. */
import { String as Str } from "effect"
import { attribute, type SpanView } from "../../api/Traces.ts"

export interface Row {
  readonly span: SpanView
  /** The span's role in a request, such as `Queue` or `Attempt 2`. */
  readonly title: string
  readonly detail: string
  /** Why there is another span of this role, such as `retry`. */
  readonly note: string | undefined
  /** Error type, even if the reporting service did not cause the error. */
  readonly error: string | undefined
  readonly isCancelled: boolean
  /** Depth in the tree; 0 at the top. */
  readonly depth: number
  /** Milliseconds since the start of the trace. */
  readonly from: number
  readonly duration: number
  /** When the answer's first bytes arrived, in milliseconds since the start of the trace. */
  readonly firstChunk: number | undefined
}

export interface Trace {
  readonly rows: ReadonlyArray<Row>
  /** Epoch milliseconds. */
  readonly start: number
  readonly duration: number
}

const textOf = ({ attributes }: SpanView, name: string): string | undefined => {
  const value = attributes[name]
  return value === undefined ? undefined : String(value)
}

/** Joins the non-empty parts with a dot. */
const joined = (...parts: ReadonlyArray<string | undefined>): string =>
  parts.filter((part) => part !== undefined && part !== "").join(" · ")

const repeated = (number: string | undefined): string | undefined =>
  Number(number) > 1 ? `attempt ${number}` : undefined

const describe: Record<SpanView["kind"], (span: SpanView) => Pick<Row, "title" | "detail" | "note">> = {
  server: (span) => ({ title: Str.capitalize(span.service), detail: span.name, note: undefined }),
  producer: (span) => ({
    title: "Queue",
    detail: textOf(span, attribute.messagingDestination) ?? span.name,
    note: repeated(textOf(span, attribute.jobAttempt))
  }),
  consumer: (span) => ({
    title: "Worker",
    detail: joined(span.service, textOf(span, attribute.requestModel)),
    note: repeated(textOf(span, attribute.delivery))
  }),
  client: (span) => {
    const number = textOf(span, attribute.attempt)
    const reason = textOf(span, attribute.reason)
    return {
      title: number === undefined ? Str.capitalize(textOf(span, attribute.step) ?? "call") : `Attempt ${number}`,
      detail: joined(textOf(span, attribute.provider), textOf(span, attribute.requestModel)) || span.name,
      note: reason === "first" ? undefined : reason
    }
  },
  internal: (span) => ({ title: Str.capitalize(span.name), detail: span.service, note: undefined })
}

const rowOf = (span: SpanView, depth: number, start: number): Row => {
  const first = span.events.find(({ name }) => name === "first chunk")
  return {
    span,
    ...describe[span.kind](span),
    error: textOf(span, attribute.errorType) ?? (span.isError ? "failed" : undefined),
    isCancelled: span.attributes[attribute.cancelled] === true,
    depth,
    from: span.start - start,
    duration: Math.max(0, span.end - span.start),
    firstChunk: first === undefined ? undefined : first.at - start
  }
}

/** Sorts spans into a tree, siblings by start. Spans whose parent is missing are at the top. */
export const traceOf = (spans: ReadonlyArray<SpanView>): Trace => {
  const sorted = spans.toSorted((a, b) => a.start - b.start)
  const start = sorted[0]?.start ?? 0
  const ids = new Set(sorted.map(({ spanId }) => spanId))
  const children = Map.groupBy(
    sorted,
    ({ parentSpanId }) => parentSpanId !== null && ids.has(parentSpanId) ? parentSpanId : null
  )
  const rows: Array<Row> = []
  const add = (parent: string | null, depth: number): void => {
    const below = children.get(parent) ?? []
    // the spans received may form a cycle
    children.delete(parent)
    for (const span of below) {
      rows.push(rowOf(span, depth, start))
      add(span.spanId, depth + 1)
    }
  }
  add(null, 0)
  return { rows, start, duration: Math.max(0, ...sorted.map(({ end }) => end - start)) }
}

/** About four round tick values from 0 to `duration`. */
export const ticksOf = (duration: number): ReadonlyArray<number> => {
  const rough = duration / 4
  const magnitude = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * magnitude).find((step) => step >= rough) ?? rough
  if (!(step > 0)) return [0]
  return Array.from({ length: Math.floor(duration / step) + 1 }, (_, index) => index * step)
}

/** The row to select first: the deepest failure, or else the root. */
export const initialRow = ({ rows }: Trace): Row | undefined =>
  rows.filter(({ span }) => span.isError).toSorted((a, b) => b.depth - a.depth)[0] ?? rows[0]
