/** A trace as a table: what the bars show, in words and numbers. */
import { Table } from "@mantine/core"
import { exact } from "../data/Format.ts"
import type { Row, Trace } from "./Rows.ts"

const outcomeOf = ({ error, isCancelled }: Row): string => error ?? (isCancelled ? "cancelled" : "–")

export const SpanTable = ({ of }: { readonly of: Trace }) => (
  <Table.ScrollContainer minWidth={760} type="native" tabIndex={0}>
    <Table verticalSpacing="xs" horizontalSpacing="md" aria-label="Spans">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Span</Table.Th>
          <Table.Th>What</Table.Th>
          <Table.Th>Service</Table.Th>
          <Table.Th ta="right">Begins at</Table.Th>
          <Table.Th ta="right">First token at</Table.Th>
          <Table.Th ta="right">Lasts</Table.Th>
          <Table.Th>Error</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {of.rows.map((row) => (
          <Table.Tr key={row.span.spanId}>
            <Table.Th scope="row" pl={`calc(var(--mantine-spacing-md) + ${Math.min(row.depth, 6) * 12}px)`}>
              {row.note === undefined ? row.title : `${row.title}, ${row.note}`}
            </Table.Th>
            <Table.Td>{row.detail}</Table.Td>
            <Table.Td>{row.span.service}</Table.Td>
            <Table.Td ta="right" className="numeric">{exact(row.from)}</Table.Td>
            <Table.Td ta="right" className="numeric">
              {row.firstChunk === undefined ? "–" : exact(row.firstChunk)}
            </Table.Td>
            <Table.Td ta="right" className="numeric">{exact(row.duration)}</Table.Td>
            <Table.Td>{outcomeOf(row)}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  </Table.ScrollContainer>
)
