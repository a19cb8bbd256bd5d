/** Queues & Workers: their current state. */
import { Badge, Box, Group, Progress, SimpleGrid, Stack, Text } from "@mantine/core"
import { LayersIcon } from "@radix-ui/react-icons"
import { useState } from "react"
import type { ProcessView, QueueView } from "../../api/Fleet.ts"
import { ago, count, counted, milliseconds } from "../data/Format.ts"
import { type Column, DataTable } from "../parts/DataTable.tsx"
import { Empty, Loaded } from "../parts/Feedback.tsx"
import { Live } from "../parts/Live.tsx"
import { Card, Fact, Page } from "../parts/Page.tsx"
import { Workload } from "../parts/Workload.tsx"
import { useFleet } from "../data/Queries.ts"

const Queue = ({ of }: { readonly of: QueueView }) => {
  const { ackPending, inFlight, oldestMs, pending, pool, redelivered, slots, waiting, workers, workload } = of
  const share = slots === 0 ? 0 : inFlight / slots
  return (
    <Box component="section" className="card" p="md" aria-label={`Queue ${workload} ${pool}`}>
      <Group justify="space-between" mb="sm">
        <Group gap="xs">
          <Workload name={workload} />
          {pool === "default" ? null : <Text size="sm" c="dimmed" className="mono">{pool}</Text>}
        </Group>
        {workers === 0
          ? <Badge color="red" variant="light" tt="none">no workers</Badge>
          : <Text size="sm" c="dimmed">{counted(workers, "worker")}</Text>}
      </Group>
      <Group align="baseline" gap={8}>
        <Text fz={34} fw={650} lh={1.1} className="numeric">{count(waiting + pending)}</Text>
        <Text size="sm" c="dimmed">waiting</Text>
      </Group>
      <SimpleGrid cols={3} spacing="xs" mt="md">
        <Fact label="Queued">{count(pending)}</Fact>
        <Fact label="Running">{count(ackPending)}</Fact>
        <Fact label="Oldest">{oldestMs === null ? "–" : milliseconds(oldestMs)}</Fact>
      </SimpleGrid>
      <Stack gap={4} mt="md">
        <Group justify="space-between">
          <Text size="xs" c="dimmed">Slots in use</Text>
          <Text size="xs" className="numeric">{`${count(inFlight)} of ${count(slots)}`}</Text>
        </Group>
        <Progress
          value={share * 100}
          color={share >= 1 ? "orange" : "iris"}
          aria-label={`Slots in use for ${workload} ${pool}`}
        />
        {redelivered > 0 && <Text size="xs" c="dimmed">{`${counted(redelivered, "job")} redelivered`}</Text>}
      </Stack>
    </Box>
  )
}

const stateColors = { starting: "cyan", ready: "teal", draining: "orange", silent: "red" }

const columns: ReadonlyArray<Column<ProcessView>> = [
  {
    head: "Service",
    cell: ({ pool, service }) => (
      <>
        <Text fw={600} size="sm">{service}</Text>
        {pool === null || pool === "default" ? null : <Text size="xs" c="dimmed">{pool}</Text>}
      </>
    )
  },
  { head: "State", cell: ({ state }) => <Badge color={stateColors[state]} variant="light" tt="none">{state}</Badge> },
  { head: "In flight", isNumeric: true, cell: ({ inFlight }) => count(inFlight) },
  { head: "Slots", isNumeric: true, cell: ({ slots }) => slots === null ? "–" : count(slots) },
  { head: "Started", cell: ({ startedAt }) => ago(startedAt) },
  {
    head: "Host and PID",
    cell: ({ host, pid }) => <Text size="xs" c="dimmed" className="mono">{`${host} · ${pid}`}</Text>
  }
]

const noProcesses = (
  <Empty icon={LayersIcon} title="No process answers">No ingress and no worker is connected to NATS.</Empty>
)

export const Fleet = () => {
  const [isLive, setLive] = useState(true)
  const query = useFleet(isLive)
  return (
    <Page
      title="Queues & Workers"
      description="Queued and running jobs, and the processes that run them. Updated every two seconds."
      actions={<Live isLive={isLive} isFailing={query.isError} toggle={() => setLive(!isLive)} />}
    >
      <Loaded query={query}>
        {({ processes, queues }) => (
          <Stack gap="lg">
            <SimpleGrid cols={{ base: 1, xs: 2, lg: 3 }}>
              {queues.map((queue) => <Queue key={`${queue.workload} ${queue.pool}`} of={queue} />)}
            </SimpleGrid>
            <Card title="Processes">
              {processes.length === 0 ? noProcesses : (
                <DataTable
                  rows={processes}
                  columns={columns}
                  keyOf={({ id }) => id}
                  minWidth={620}
                  verticalSpacing="xs"
                  aria-label="Processes"
                />
              )}
            </Card>
          </Stack>
        )}
      </Loaded>
    </Page>
  )
}
