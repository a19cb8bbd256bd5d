/** Requests: the latest that have ended, one by one. */
import { Anchor, Box, Button, Group, Select, Table, Text, TextInput } from "@mantine/core"
import { ActivityLogIcon, MagnifyingGlassIcon } from "@radix-ui/react-icons"
import { useState } from "react"
import { Link, useLocation, useSearchParams } from "wouter"
import type { UsageEvent } from "../../../../shared/usage/UsageEvent.ts"
import { counted, milliseconds, money, timeOf } from "../data/Format.ts"
import { Empty, Loaded } from "../parts/Feedback.tsx"
import { Live } from "../parts/Live.tsx"
import { Page } from "../parts/Page.tsx"
import { useKeys, useRequests } from "../data/Queries.ts"
import { Request } from "../requests/Request.tsx"
import { addressOf, consumed, Outcome, outcomes } from "../parts/RequestFacts.tsx"

const Rows = ({ nameOf, of }: {
  readonly of: ReadonlyArray<UsageEvent>
  readonly nameOf: (key: string) => string
}) => (
  <Table.ScrollContainer minWidth={860} type="native" tabIndex={0}>
    <Table verticalSpacing="xs" horizontalSpacing="md" highlightOnHover aria-label="Latest requests">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Ended</Table.Th>
          <Table.Th>Operation</Table.Th>
          <Table.Th>Model</Table.Th>
          <Table.Th>Key</Table.Th>
          <Table.Th>Outcome</Table.Th>
          <Table.Th>First byte</Table.Th>
          <Table.Th>Whole</Table.Th>
          <Table.Th>Consumed</Table.Th>
          <Table.Th>Cost</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {of.map((event) => (
          <Table.Tr key={event.id} className="row-of-link">
            <Table.Td className="numeric">{timeOf(event.time)}</Table.Td>
            <Table.Td>
              <Anchor component={Link} href={addressOf(event.id)} className="mono row-link">{event.operation}</Anchor>
            </Table.Td>
            <Table.Td>
              <Text size="sm" fw={550}>{event.model}</Text>
              {event.provider === null ? null : (
                <Text size="xs" c="dimmed">
                  {event.attempts > 1 ? `${event.provider}, ${event.attempts} calls` : event.provider}
                </Text>
              )}
            </Table.Td>
            <Table.Td maw={180}>
              <Text size="sm" truncate>{nameOf(event.key)}</Text>
            </Table.Td>
            <Table.Td>
              <Outcome outcome={event.outcome} error={event.error} />
            </Table.Td>
            <Table.Td className="numeric">
              {event.firstByteMs === null ? "–" : milliseconds(event.firstByteMs)}
            </Table.Td>
            <Table.Td className="numeric">{milliseconds(event.durationMs)}</Table.Td>
            <Table.Td className="numeric">{consumed(event)}</Table.Td>
            <Table.Td className="numeric">{event.costUsd === null ? "–" : money(event.costUsd)}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  </Table.ScrollContainer>
)

/** Rows that are shown at first, and more with each wish for more. */
const atOnce = 25

/** Leads to a request by what its client has of it. */
const Find = () => {
  const [, navigate] = useLocation()
  const [id, setId] = useState("")
  return (
    <form
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        if (id.trim() !== "") navigate(addressOf(id.trim()))
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

/** Which request is looked at stands in the address. */
export const Requests = () => {
  const [search] = useSearchParams()
  const id = search.get("id")
  return id === null || id === "" ? <Latest /> : <Request key={id} id={id} />
}

const Latest = () => {
  const [isLive, setLive] = useState(true)
  const [model, setModel] = useState<string | null>(null)
  const [outcome, setOutcome] = useState<string | null>(null)
  const [shown, show] = useState(atOnce)
  const query = useRequests(isLive)
  const keys = useKeys()
  const nameOf = (id: string) => keys.data?.find((key) => key.id === id)?.name ?? id
  return (
    <Page
      title="Requests"
      description="The latest two hundred that have ended: who asked for what, and how it went. Never what was said."
      actions={<Live isLive={isLive} isFailing={query.isError} toggle={() => setLive(!isLive)} />}
    >
      <Box className="card">
        <Loaded query={query}>
          {(events) => {
            if (events.length === 0) {
              return (
                <Empty icon={<ActivityLogIcon width={22} height={22} />} title="No requests yet">
                  As soon as a client has asked something of a model, it stands here.
                </Empty>
              )
            }
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
                <Rows of={found.slice(0, shown)} nameOf={nameOf} />
                {found.length <= shown ? null : (
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
