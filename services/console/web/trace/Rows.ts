/** The spans of a trace as rows: who did what, below whom, from when to when. */
import { attribute, type SpanView } from "../../api/Traces.ts"

export interface Row {
  readonly span: SpanView
  /** What it is to a request, such as `Queue` or `Attempt 2`. */
  readonly title: string
  /** What exactly. */
  readonly detail: string
  /** Why there is another of its kind, such as `retry`. */
  readonly note: string | undefined
  /** The kind of its error, whether or not it is the fault of whoever tells of it. */
  readonly error: string | undefined
  readonly isCancelled: boolean
  /** From 0. */
  readonly depth: number
  /** Milliseconds from the beginning of the trace. */
  readonly from: number
  readonly duration: number
  /** When the first bytes of an answer came, in milliseconds from the beginning of the trace. */
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

const capitalized = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`

/** Those that are there, with a dot between them. */
const joined = (...parts: ReadonlyArray<string | undefined>): string =>
  parts.filter((part) => part !== undefined && part !== "").join(" · ")

const again = (number: string | undefined): string | undefined => Number(number) > 1 ? `attempt ${number}` : undefined

type Told = Pick<Row, "title" | "detail" | "note">

const describe: Record<SpanView["kind"], (span: SpanView) => Told> = {
  server: (span) => ({ title: capitalized(span.service), detail: span.name, note: undefined }),
  producer: (span) => ({
    title: "Queue",
    detail: textOf(span, attribute.messagingDestination) ?? span.name,
    note: again(textOf(span, attribute.jobAttempt))
  }),
  consumer: (span) => ({
    title: "Worker",
    detail: joined(span.service, textOf(span, attribute.requestModel)),
    note: again(textOf(span, attribute.delivery))
  }),
  client: (span) => {
    const number = textOf(span, attribute.attempt)
    const reason = textOf(span, attribute.reason)
    return {
      title: number === undefined ? capitalized(textOf(span, attribute.step) ?? "call") : `Attempt ${number}`,
      detail: joined(textOf(span, attribute.provider), textOf(span, attribute.requestModel)) || span.name,
      note: reason === "first" ? undefined : reason
    }
  },
  internal: (span) => ({ title: capitalized(span.name), detail: span.service, note: undefined })
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

/** Each span is followed by those below it, all in the order in which they began. What has no parent here is at the top. */
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
    // what is sent may lead in a circle
    children.delete(parent)
    for (const span of below) {
      rows.push(rowOf(span, depth, start))
      add(span.spanId, depth + 1)
    }
  }
  add(null, 0)
  return { rows, start, duration: Math.max(0, ...sorted.map(({ end }) => end - start)) }
}

/** Round moments from 0 on, about four, none of them near the end but the end itself. */
export const ticksOf = (duration: number): ReadonlyArray<number> => {
  const rough = duration / 4
  const magnitude = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * magnitude).find((step) => step >= rough) ?? rough
  if (!(step > 0)) return [0]
  return Array.from({ length: Math.floor(duration / step) + 1 }, (_, index) => index * step)
}

/** What a look should begin with: the deepest failure, else the whole. */
export const mostTelling = ({ rows }: Trace): Row | undefined =>
  rows.filter(({ span }) => span.isError).toSorted((a, b) => b.depth - a.depth)[0] ?? rows[0]
