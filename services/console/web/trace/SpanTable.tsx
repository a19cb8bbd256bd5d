/** A trace as a table. */
import { exact } from "../data/Format.ts"
import { type Column, DataTable } from "../parts/DataTable.tsx"
import type { Row, Trace } from "./Rows.ts"

const right = { ta: "right" } as const

const columns: ReadonlyArray<Column<Row>> = [
  {
    head: "Span",
    isRowHeader: true,
    cell: ({ depth, note, title }) => (
      <div style={{ paddingInlineStart: Math.min(depth, 6) * 12 }}>
        {note === undefined ? title : `${title}, ${note}`}
      </div>
    )
  },
  { head: "Detail", cell: ({ detail }) => detail },
  { head: "Service", cell: ({ span }) => span.service },
  { head: "Start", isNumeric: true, props: right, cell: ({ from }) => exact(from) },
  {
    head: "First token",
    isNumeric: true,
    props: right,
    cell: ({ firstChunk }) => firstChunk === undefined ? "–" : exact(firstChunk)
  },
  { head: "Duration", isNumeric: true, props: right, cell: ({ duration }) => exact(duration) },
  { head: "Error", cell: ({ error, isCancelled }) => error ?? (isCancelled ? "cancelled" : "–") }
]

export const SpanTable = ({ of }: { readonly of: Trace }) => (
  <DataTable
    rows={of.rows}
    columns={columns}
    keyOf={({ span }) => span.spanId}
    minWidth={760}
    verticalSpacing="xs"
    horizontalSpacing="md"
    aria-label="Spans"
  />
)
