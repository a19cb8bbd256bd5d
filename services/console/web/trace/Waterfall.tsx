/** A trace as bars on a common time scale. The arrow keys move the selection. */
import { Badge, Text, VisuallyHidden } from "@mantine/core"
import { ExclamationTriangleIcon } from "@radix-ui/react-icons"
import { type KeyboardEvent, useRef } from "react"
import { exact } from "../data/Format.ts"
import { type Row, ticksOf, type Trace } from "./Rows.ts"

const percent = (part: number, whole: number): string => `${whole === 0 ? 0 : Math.min(100, (part / whole) * 100)}%`

const stateOf = ({ isCancelled, span }: Row): string => span.isError ? "failed" : isCancelled ? "cancelled" : "done"

const Bar = ({ of, whole }: { readonly of: Row; readonly whole: number }) => (
  <div
    className="trace-bar"
    data-kind={of.span.kind}
    data-state={stateOf(of)}
    style={{ left: percent(of.from, whole), width: percent(of.duration, whole) }}
  >
    {of.firstChunk !== undefined && <i style={{ left: percent(of.firstChunk - of.from, of.duration) }} />}
  </div>
)

const steps: Readonly<Record<string, (index: number, length: number) => number>> = {
  ArrowDown: (index, length) => Math.min(length - 1, index + 1),
  ArrowUp: (index) => Math.max(0, index - 1),
  Home: () => 0,
  End: (_, length) => length - 1
}

const legend = [
  { kind: "server", text: "ingress" },
  { kind: "producer", text: "queue" },
  { kind: "consumer", text: "worker" },
  { kind: "client", text: "waiting for the provider" },
  { kind: "stream", text: "the provider's stream" }
] as const

export const Legend = () => (
  <ul className="trace-legend">
    {legend.map(({ kind, text }) => (
      <li key={kind}>
        <span data-kind={kind} aria-hidden />
        {text}
      </li>
    ))}
  </ul>
)

export const Waterfall = ({ of, select, selected }: {
  readonly of: Trace
  /** The id of a span. */
  readonly selected: string | undefined
  readonly select: (spanId: string) => void
}) => {
  const rows = useRef(new Map<string, HTMLDivElement>())
  const ticks = ticksOf(of.duration)
  const index = of.rows.findIndex(({ span }) => span.spanId === selected)
  const onKeyDown = (event: KeyboardEvent) => {
    const row = of.rows[steps[event.key]?.(index, of.rows.length) ?? -1]
    if (row === undefined) return
    event.preventDefault()
    select(row.span.spanId)
    rows.current.get(row.span.spanId)?.focus()
  }
  return (
    <div>
      <div className="trace-ruler" aria-hidden>
        <div />
        <div className="trace-scale">
          {ticks.map((tick) => (
            <span key={tick} data-last={tick > of.duration * 0.9} style={{ left: percent(tick, of.duration) }}>
              {exact(tick)}
            </span>
          ))}
        </div>
        <div />
      </div>
      <div role="tree" aria-label="Trace">
        {of.rows.map((row) => {
          const id = row.span.spanId
          return (
            <div
              key={id}
              ref={(element) => {
                if (element === null) rows.current.delete(id)
                else rows.current.set(id, element)
              }}
              role="treeitem"
              aria-level={row.depth + 1}
              aria-selected={id === selected}
              tabIndex={id === selected ? 0 : -1}
              className="trace-row"
              onClick={() => select(id)}
              onKeyDown={onKeyDown}
            >
              <div className="trace-name" style={{ paddingInlineStart: Math.min(row.depth, 6) * 14 }}>
                <div className="trace-title">
                  <span className="trace-mark" data-kind={row.span.kind} data-state={stateOf(row)} />
                  <Text span size="sm" fw={600}>{row.title}</Text>
                  {row.note !== undefined && <Badge size="xs" variant="default" tt="none">{row.note}</Badge>}
                  {row.error !== undefined && (
                    <Badge
                      size="xs"
                      variant="light"
                      color={row.span.isError ? "red" : "orange"}
                      tt="none"
                      leftSection={<ExclamationTriangleIcon width={10} height={10} />}
                    >
                      {row.error}
                    </Badge>
                  )}
                  {row.isCancelled && <Badge size="xs" variant="light" color="gray" tt="none">cancelled</Badge>}
                </div>
                <Text size="xs" c="dimmed" truncate title={row.detail}>{row.detail}</Text>
              </div>
              <div className="trace-track" aria-hidden>
                {ticks.map((tick) => (
                  <span key={tick} className="trace-line" style={{ left: percent(tick, of.duration) }} />
                ))}
                <Bar of={row} whole={of.duration} />
              </div>
              <div className="trace-time">
                <VisuallyHidden>{`begins at ${exact(row.from)}, lasts`}</VisuallyHidden>
                <Text size="sm" className="numeric">{exact(row.duration)}</Text>
                {row.firstChunk !== undefined && (
                  <VisuallyHidden>{`first token at ${exact(row.firstChunk)}`}</VisuallyHidden>
                )}
              </div>
            </div>
          )
        })}
      </div>
    </div>
  )
}
