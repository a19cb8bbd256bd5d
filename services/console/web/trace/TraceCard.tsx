/** The trace of a request, or the reason why it is missing. */
import { SegmentedControl, Stack, Text } from "@mantine/core"
import { useState } from "react"
import { isNoTrace, isTracedElsewhere } from "../data/Client.ts"
import { Failure, Waiting } from "../parts/Feedback.tsx"
import { Card } from "../parts/Page.tsx"
import type { useTrace } from "../data/Queries.ts"
import { initialRow, traceOf } from "./Rows.ts"
import { SpanDetails } from "./SpanDetails.tsx"
import { SpanTable } from "./SpanTable.tsx"
import { Legend, Waterfall } from "./Waterfall.tsx"

/** Only the first spans of a longer trace are drawn. */
const maxDrawn = 300

interface TraceProps {
  readonly query: ReturnType<typeof useTrace>
  /** Whether the request was traced, here or elsewhere. */
  readonly isTraced: boolean
}

const Missing = ({ isTraced, query: { error, refetch } }: TraceProps) => {
  if (error === null) return <Waiting />
  if (isTracedElsewhere(error)) {
    return (
      <Stack gap="xs" py="sm" maw={680}>
        <Text>The services send their traces to a collector. This console keeps none.</Text>
        <Text c="dimmed">
          {isTraced ? "Search the collector for the trace id above." : "This request was not traced."}
        </Text>
      </Stack>
    )
  }
  if (!isNoTrace(error)) return <Failure error={error} retry={refetch} />
  return (
    <Stack gap="xs" py="sm" maw={680} role="status">
      <Text>There is no trace of this request.</Text>
      <Text c="dimmed">
        Spans arrive within seconds of the request's end. The console keeps the latest few thousand in memory until it
        restarts. Under load only some requests are traced, besides those that fail or are slow.
      </Text>
    </Stack>
  )
}

export const TraceCard = ({ isTraced, query }: TraceProps) => {
  const [shown, show] = useState("waterfall")
  const [chosen, choose] = useState<string>()
  if (query.data === undefined || isTracedElsewhere(query.error)) {
    return (
      <Card title="Trace">
        <Missing isTraced={isTraced} query={query} />
      </Card>
    )
  }
  const trace = traceOf(query.data.slice(0, maxDrawn))
  const selected = trace.rows.find(({ span }) => span.spanId === chosen) ?? initialRow(trace)
  const rest = query.data.length - trace.rows.length
  return (
    <Card
      isFlush
      title="Trace"
      aside={
        <SegmentedControl
          size="xs"
          aria-label="Trace: waterfall or table"
          value={shown}
          onChange={show}
          data={[{ value: "waterfall", label: "Waterfall" }, { value: "table", label: "Table" }]}
        />
      }
    >
      {shown === "table" ? <SpanTable of={trace} /> : (
        <div className="trace-card">
          <Waterfall of={trace} selected={selected?.span.spanId} select={choose} />
          <Legend />
          {selected === undefined ? null : <SpanDetails of={selected} start={trace.start} />}
        </div>
      )}
      {rest > 0 && <Text size="sm" c="dimmed" p="md">{`${rest} more spans are not shown`}</Text>}
    </Card>
  )
}
