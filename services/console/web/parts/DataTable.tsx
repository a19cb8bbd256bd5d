/** A table, from a list of rows and the definitions of its columns. */
import { Table, type TableProps, type TableTdProps } from "@mantine/core"
import type { ReactNode } from "react"

export interface Column<Row> {
  readonly head: ReactNode
  readonly cell: (row: Row) => ReactNode
  /** Aligned with equal digit widths: for numbers. */
  readonly isNumeric?: boolean
  /** Whether its cells name their rows. */
  readonly isRowHeader?: boolean
  readonly props?: TableTdProps
}

/** Scrolls sideways below `minWidth`, and vertically above `maxHeight`. */
export function DataTable<Row>({ columns, keyOf, maxHeight, minWidth, rowClass, rows, ...props }: TableProps & {
  readonly rows: ReadonlyArray<Row>
  readonly columns: ReadonlyArray<Column<Row>>
  readonly keyOf: (row: Row) => string
  readonly rowClass?: string
  readonly minWidth?: number
  readonly maxHeight?: number
}) {
  const table = (
    <Table {...props}>
      <Table.Thead>
        <Table.Tr>
          {columns.map(({ head, props }, index) => <Table.Th key={index} ta={props?.ta}>{head}</Table.Th>)}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map((row) => (
          <Table.Tr key={keyOf(row)} className={rowClass}>
            {columns.map(({ cell, isNumeric, isRowHeader, props }, index) =>
              isRowHeader === true
                ? <Table.Th key={index} scope="row">{cell(row)}</Table.Th>
                : (
                  <Table.Td key={index} className={isNumeric === true ? "numeric" : undefined} {...props}>
                    {cell(row)}
                  </Table.Td>
                )
            )}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  )
  if (minWidth === undefined) return table
  // positioned, so that it clips hidden texts, too
  return (
    <Table.ScrollContainer {...{ minWidth, maxHeight }} type="native" tabIndex={0} pos="relative">
      {table}
    </Table.ScrollContainer>
  )
}
