/** One request: what became of it, and its trace. */
import { Anchor, Box, Group, SimpleGrid, Stack, Text } from "@mantine/core"
import { ActivityLogIcon, ArrowLeftIcon } from "@radix-ui/react-icons"
import { DateTime } from "effect"
import { type ReactNode, useState } from "react"
import { Link } from "wouter"
import type { UsageEvent } from "../../../../shared/usage/UsageEvent.ts"
import { attribute, type SpanView } from "../../api/Traces.ts"
import { exact, milliseconds, moment, money } from "../data/Format.ts"
import { Id } from "../parts/Copy.tsx"
import { Empty } from "../parts/Feedback.tsx"
import { Page } from "../parts/Page.tsx"
import { useKeys, useRequests, useTrace } from "../data/Queries.ts"
import { TraceCard } from "../trace/TraceCard.tsx"
import { consumed, Outcome } from "../parts/RequestFacts.tsx"

const Fact = ({ children, label }: { readonly label: string; readonly children: ReactNode }) => (
  <Box miw={0}>
    <Text size="xs" c="dimmed">{label}</Text>
    <Box fw={600} className="numeric" style={{ overflowWrap: "anywhere" }}>{children}</Box>
  </Box>
)

/** What the server's span says, of a request that no worker had. */
const endOf = ({ attributes, isError }: SpanView): Pick<UsageEvent, "outcome" | "error"> => {
  if (attributes[attribute.cancelled] === true) return { outcome: "cancelled", error: null }
  const error = attributes[attribute.errorType]
  if (error === undefined && !isError) return { outcome: "success", error: null }
  return { outcome: "failure", error: error === undefined ? null : String(error) }
}

const Facts = ({ event, root }: { readonly event: UsageEvent | undefined; readonly root: SpanView | undefined }) => {
  const keys = useKeys()
  const key = event?.key ?? root?.attributes[attribute.tenant]
  const end = event ?? (root === undefined ? undefined : endOf(root))
  const status = root?.attributes[attribute.httpStatus]
  const queueMs = root?.attributes[attribute.queueMs]
  return (
    <Box className="card" p="md">
      <SimpleGrid cols={{ base: 2, xs: 3, md: 5 }} spacing="md">
        {end === undefined ? null : (
          <Fact label="Outcome">
            <Outcome outcome={end.outcome} error={end.error} />
          </Fact>
        )}
        {status === undefined ? null : <Fact label="Status">{String(status)}</Fact>}
        <Fact label="Whole">
          {root !== undefined
            ? exact(root.end - root.start)
            : event === undefined
            ? "–"
            : milliseconds(event.durationMs)}
        </Fact>
        {typeof queueMs === "number" ? <Fact label="Until a worker had it">{exact(queueMs)}</Fact> : null}
        {event === undefined ? null : (
          <>
            <Fact label="First byte">{event.firstByteMs === null ? "–" : milliseconds(event.firstByteMs)}</Fact>
            <Fact label="Provider">
              {event.attempts > 1 ? `${event.provider ?? "–"}, ${event.attempts} calls` : event.provider ?? "–"}
            </Fact>
            <Fact label="Consumed">{consumed(event)}</Fact>
            <Fact label="Cost">{event.costUsd === null ? "–" : money(event.costUsd)}</Fact>
          </>
        )}
        {key === undefined ?
          null :
          <Fact label="Key">{keys.data?.find(({ id }) => id === key)?.name ?? String(key)}</Fact>}
      </SimpleGrid>
    </Box>
  )
}

/** Of a request, the ids by which other places know it. */
const Ids = ({ requestId, traceId }: {
  readonly requestId: string | undefined
  readonly traceId: string | undefined
}) => (
  <Group gap="4px 24px">
    {requestId === undefined ? null : (
      <Group gap={6}>
        <Text size="sm" c="dimmed">x-request-id</Text>
        <Id value={requestId} label="Copy the request id" />
      </Group>
    )}
    {traceId === undefined ? null : (
      <Group gap={6}>
        <Text size="sm" c="dimmed">trace</Text>
        <Id value={traceId} label="Copy the trace id" />
      </Group>
    )}
  </Group>
)

/** `id` is that of a usage event, a request or a trace. */
export const Request = ({ id }: { readonly id: string }) => {
  const requests = useRequests(false)
  const query = useTrace(id)
  const spans = query.data ?? []
  const root = spans.find(({ kind }) => kind === "server")
  const jobs = spans.flatMap(({ attributes }) => attributes[attribute.messageId] ?? [])
  const found = requests.data?.find((event) => event.id === id || jobs.includes(event.id))
  // it stays while it is looked at, when two hundred others have come
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
              <Empty icon={<ActivityLogIcon width={22} height={22} />} title="Nothing is known by this id">
                It is neither one of the latest two hundred requests, nor is its trace kept here. Ids are those of the
                header x-request-id, or of a trace.
              </Empty>
            </Box>
          )
          : (
            <>
              <Ids requestId={requestId === undefined ? undefined : String(requestId)} traceId={traceId} />
              <Facts event={event} root={root} />
              <TraceCard query={query} isTraced={traceId !== undefined} />
            </>
          )}
      </Page>
    </Stack>
  )
}
