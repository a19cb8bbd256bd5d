/** Requests: the latest completed ones. */
import { Anchor, Box, Button, Group, Select, Text, TextInput } from "@mantine/core"
import { ActivityLogIcon, MagnifyingGlassIcon } from "@radix-ui/react-icons"
import { useState } from "react"
import { Link, useLocation, useSearchParams } from "wouter"
import type { UsageEvent } from "../../../../shared/usage/UsageEvent.ts"
import { counted, milliseconds, money, timeOf } from "../data/Format.ts"
import { type Column, DataTable } from "../parts/DataTable.tsx"
import { Empty, Loaded } from "../parts/Feedback.tsx"
import { Live } from "../parts/Live.tsx"
import { Page } from "../parts/Page.tsx"
import { useKeyNames, useRequests } from "../data/Queries.ts"
import { Request } from "../requests/Request.tsx"
import { Outcome, outcomes, providerOf, requestPath, usageText } from "../parts/RequestFacts.tsx"

const columnsOf = (nameOf: (key: string) => string): ReadonlyArray<Column<UsageEvent>> => [
  { head: "Ended", isNumeric: true, cell: ({ time }) => timeOf(time) },
  {
    head: "Operation",
    cell: ({ id, operation }) => (
      <Anchor component={Link} href={requestPath(id)} className="mono row-link">{operation}</Anchor>
    )
  },
  {
    head: "Model",
    cell: (event) => (
      <>
        <Text size="sm" fw={550}>{event.model}</Text>
        {event.provider === null ? null : <Text size="xs" c="dimmed">{providerOf(event)}</Text>}
      </>
    )
  },
  { head: "Key", props: { maw: 180 }, cell: ({ key }) => <Text size="sm" truncate>{nameOf(key)}</Text> },
  { head: "Outcome", cell: ({ error, outcome }) => <Outcome outcome={outcome} error={error} /> },
  {
    head: "First byte",
    isNumeric: true,
    cell: ({ firstByteMs }) => firstByteMs === null ? "–" : milliseconds(firstByteMs)
  },
  { head: "Duration", isNumeric: true, cell: ({ durationMs }) => milliseconds(durationMs) },
  { head: "Usage", isNumeric: true, cell: usageText },
  { head: "Cost", isNumeric: true, cell: ({ costUsd }) => costUsd === null ? "–" : money(costUsd) }
]

/** Rows shown at first, and added by each "Show more". */
const atOnce = 25

/** Opens a request by an id that its client received. */
const Find = () => {
  const [, navigate] = useLocation()
  const [id, setId] = useState("")
  return (
    <form
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        if (id.trim() !== "") navigate(requestPath(id.trim()))
      }}
    >
      <TextInput
        aria-label="Find by x-request-id or trace id"
        placeholder="x-request-id or trace id, Enter"
        leftSection={<MagnifyingGlassIcon />}
        value={id}
        maxLength={128}
        onChange={({ currentTarget }) => setId(currentTarget.value)}
        w={{ base: "100%", xs: 280 }}
      />
    </form>
  )
}

/** The URL holds the id of the open request. */
export const Requests = () => {
  const [search] = useSearchParams()
  const id = search.get("id")
  return id === null || id === "" ? <Latest /> : <Request key={id} id={id} />
}

const noRequests = (
  <Empty icon={ActivityLogIcon} title="No requests yet">Requests appear here when they complete.</Empty>
)

const Latest = () => {
  const [isLive, setLive] = useState(true)
  const [model, setModel] = useState<string | null>(null)
  const [outcome, setOutcome] = useState<string | null>(null)
  const [shown, show] = useState(atOnce)
  const query = useRequests(isLive)
  const nameOf = useKeyNames()
  return (
    <Page
      title="Requests"
      description="The latest 200 completed requests: key, model, outcome and cost, never their content."
      actions={<Live isLive={isLive} isFailing={query.isError} toggle={() => setLive(!isLive)} />}
    >
      <Box className="card">
        <Loaded query={query} empty={noRequests}>
          {(events) => {
            const found = events.filter((event) =>
              (model === null || event.model === model) && (outcome === null || event.outcome === outcome)
            )
            return (
              <>
                <Group p="md" gap="sm">
                  <Select
                    aria-label="Model"
                    placeholder="All models"
                    clearable
                    value={model}
                    onChange={setModel}
                    data={[...new Set(events.map((event) => event.model))].toSorted()}
                  />
                  <Select
                    aria-label="Outcome"
                    placeholder="All outcomes"
                    clearable
                    value={outcome}
                    onChange={setOutcome}
                    data={Object.entries(outcomes).map(([value, { text }]) => ({ value, label: text }))}
                  />
                  <Find />
                  <Text size="sm" c="dimmed" role="status">{counted(found.length, "request")}</Text>
                </Group>
                <DataTable
                  rows={found.slice(0, shown)}
                  columns={columnsOf(nameOf)}
                  keyOf={(event) => event.id}
                  rowClass="row-of-link"
                  minWidth={860}
                  verticalSpacing="xs"
                  horizontalSpacing="md"
                  highlightOnHover
                  aria-label="Latest requests"
                />
                {found.length > shown && (
                  <Group justify="center" p="md">
                    <Button variant="default" onClick={() => show(shown + atOnce)}>Show more</Button>
                  </Group>
                )}
              </>
            )
          }}
        </Loaded>
      </Box>
    </Page>
  )
}
