/** One request: its outcome and its trace. */
import { Anchor, Box, Group, SimpleGrid, Stack, Text } from "@mantine/core"
import { ActivityLogIcon, ArrowLeftIcon } from "@radix-ui/react-icons"
import { DateTime } from "effect"
import { useState } from "react"
import { Link } from "wouter"
import type { UsageEvent } from "../../../../shared/usage/UsageEvent.ts"
import { attribute, type SpanView } from "../../api/Traces.ts"
import { exact, milliseconds, moment, money } from "../data/Format.ts"
import { Id } from "../parts/Copy.tsx"
import { Empty } from "../parts/Feedback.tsx"
import { Fact, Page } from "../parts/Page.tsx"
import { useKeyNames, useRequests, useTrace } from "../data/Queries.ts"
import { TraceCard } from "../trace/TraceCard.tsx"
import { Outcome, providerOf, usageText } from "../parts/RequestFacts.tsx"

/** The outcome from the server's span, for a request that reached no worker. */
const outcomeOf = ({ attributes, isError }: SpanView): Pick<UsageEvent, "outcome" | "error"> => {
  if (attributes[attribute.cancelled] === true) return { outcome: "cancelled", error: null }
  const error = attributes[attribute.errorType]
  if (error === undefined && !isError) return { outcome: "success", error: null }
  return { outcome: "failure", error: error === undefined ? null : String(error) }
}

const Facts = ({ event, root }: { readonly event: UsageEvent | undefined; readonly root: SpanView | undefined }) => {
  const nameOf = useKeyNames()
  const key = event?.key ?? root?.attributes[attribute.tenant]
  const end = event ?? (root === undefined ? undefined : outcomeOf(root))
  const status = root?.attributes[attribute.httpStatus]
  const queueMs = root?.attributes[attribute.queueMs]
  const measured = event === undefined ? "–" : milliseconds(event.durationMs)
  const duration = root === undefined ? measured : exact(root.end - root.start)
  return (
    <Box className="card" p="md">
      <SimpleGrid cols={{ base: 2, xs: 3, md: 5 }} spacing="md">
        {end === undefined ? null : (
          <Fact label="Outcome">
            <Outcome outcome={end.outcome} error={end.error} />
          </Fact>
        )}
        {status !== undefined && <Fact label="Status">{String(status)}</Fact>}
        <Fact label="Duration">{duration}</Fact>
        {typeof queueMs === "number" && <Fact label="Queue time">{exact(queueMs)}</Fact>}
        {event !== undefined && (
          <>
            <Fact label="Time to first byte">{event.firstByteMs === null ? "–" : milliseconds(event.firstByteMs)}</Fact>
            <Fact label="Provider">{providerOf(event)}</Fact>
            <Fact label="Usage">{usageText(event)}</Fact>
            <Fact label="Cost">{event.costUsd === null ? "–" : money(event.costUsd)}</Fact>
          </>
        )}
        {key !== undefined && <Fact label="Key">{nameOf(String(key))}</Fact>}
      </SimpleGrid>
    </Box>
  )
}

const LabelledId = ({ copy, label, value }: {
  readonly label: string
  readonly copy: string
  readonly value: string | undefined
}) =>
  value === undefined ? null : (
    <Group gap={6}>
      <Text size="sm" c="dimmed">{label}</Text>
      <Id value={value} label={copy} />
    </Group>
  )

/** `id` is the id of a usage event, a request or a trace. */
export const Request = ({ id }: { readonly id: string }) => {
  const requests = useRequests(false)
  const query = useTrace(id)
  const spans = query.data ?? []
  const root = spans.find(({ kind }) => kind === "server")
  const jobs = spans.flatMap(({ attributes }) => attributes[attribute.messageId] ?? [])
  const found = requests.data?.find((event) => event.id === id || jobs.includes(event.id))
  // stays open after 200 newer requests
  const [kept, keep] = useState(found)
  if (found !== undefined && found !== kept) keep(found)
  const event = found ?? (kept?.id === id ? kept : undefined)
  const traceId = event?.traceId ?? root?.traceId ?? spans[0]?.traceId
  const requestId = root?.attributes[attribute.requestId]
  const operation = event?.operation ?? root?.attributes[attribute.gatewayOperation]
  const model = event?.model ?? root?.attributes[attribute.requestModel]
  const at = root?.start ?? event?.time
  const isKnown = event !== undefined || spans.length > 0
  const isSettled = requests.data !== undefined && !query.isPending
  return (
    <Stack gap="sm">
      <Anchor component={Link} href="/requests" size="sm" w="fit-content">
        <Group gap={6}>
          <ArrowLeftIcon aria-hidden />
          All requests
        </Group>
      </Anchor>
      <Page
        title={operation === undefined ? "Request" : String(operation)}
        description={[
          ...(model === undefined ? [] : [String(model)]),
          ...(at === undefined ? [] : [moment(DateTime.makeUnsafe(at))])
        ].join(" · ")}
      >
        {isSettled && !isKnown
          ? (
            <Box className="card">
              <Empty icon={ActivityLogIcon} title="Request not found">
                The id is not among the latest 200 requests, and no trace with this id is stored. Use an x-request-id or
                a trace id.
              </Empty>
            </Box>
          )
          : (
            <>
              <Group gap="4px 24px">
                <LabelledId label="x-request-id" copy="Copy the request id" value={requestId?.toString()} />
                <LabelledId label="trace" copy="Copy the trace id" value={traceId} />
              </Group>
              <Facts event={event} root={root} />
              <TraceCard query={query} isTraced={traceId !== undefined} />
            </>
          )}
      </Page>
    </Stack>
  )
}
