/** Queues & Workers as they are at this moment. */
import { Badge, Box, Group, Progress, SimpleGrid, Stack, Table, Text } from "@mantine/core"
import { LayersIcon } from "@radix-ui/react-icons"
import { useState } from "react"
import type { ProcessView, QueueView } from "../../api/Fleet.ts"
import { ago, count, counted, milliseconds } from "../data/Format.ts"
import { Empty, Loaded } from "../parts/Feedback.tsx"
import { Live } from "../parts/Live.tsx"
import { Card, Page } from "../parts/Page.tsx"
import { Workload } from "../parts/Workload.tsx"
import { useFleet } from "../data/Queries.ts"

const Figure = ({ label, value }: { readonly label: string; readonly value: string }) => (
  <div>
    <Text size="xs" c="dimmed">{label}</Text>
    <Text fw={600} className="numeric">{value}</Text>
  </div>
)

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
          ? <Badge color="red" variant="light" tt="none">no worker</Badge>
          : <Text size="sm" c="dimmed">{counted(workers, "worker")}</Text>}
      </Group>
      <Group align="baseline" gap={8}>
        <Text fz={34} fw={650} lh={1.1} className="numeric">{count(waiting + pending)}</Text>
        <Text size="sm" c="dimmed">waiting</Text>
      </Group>
      <SimpleGrid cols={3} spacing="xs" mt="md">
        <Figure label="In the queue" value={count(pending)} />
        <Figure label="Being done" value={count(ackPending)} />
        <Figure label="Oldest" value={oldestMs === null ? "–" : milliseconds(oldestMs)} />
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
        {redelivered === 0 ?
          null :
          <Text size="xs" c="dimmed">{`${counted(redelivered, "job")} given out more than once`}</Text>}
      </Stack>
    </Box>
  )
}

const stateColors = { starting: "cyan", ready: "teal", draining: "orange", silent: "red" }

const Processes = ({ of }: { readonly of: ReadonlyArray<ProcessView> }) => (
  <Table.ScrollContainer minWidth={620} type="native" tabIndex={0}>
    <Table verticalSpacing="xs" aria-label="Processes">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Service</Table.Th>
          <Table.Th>State</Table.Th>
          <Table.Th>In flight</Table.Th>
          <Table.Th>Slots</Table.Th>
          <Table.Th>Started</Table.Th>
          <Table.Th>Where</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {of.map(({ host, id, inFlight, pid, pool, service, slots, startedAt, state }) => (
          <Table.Tr key={id}>
            <Table.Td>
              <Text fw={600} size="sm">{service}</Text>
              {pool === null || pool === "default" ? null : <Text size="xs" c="dimmed">{pool}</Text>}
            </Table.Td>
            <Table.Td>
              <Badge color={stateColors[state]} variant="light" tt="none">{state}</Badge>
            </Table.Td>
            <Table.Td className="numeric">{count(inFlight)}</Table.Td>
            <Table.Td className="numeric">{slots === null ? "–" : count(slots)}</Table.Td>
            <Table.Td>{ago(startedAt)}</Table.Td>
            <Table.Td>
              <Text size="xs" c="dimmed" className="mono">{`${host} · ${pid}`}</Text>
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  </Table.ScrollContainer>
)

export const Fleet = () => {
  const [isLive, setLive] = useState(true)
  const query = useFleet(isLive)
  return (
    <Page
      title="Queues & Workers"
      description="What waits, what is being done and by whom. Every process is asked anew every two seconds."
      actions={<Live isLive={isLive} isFailing={query.isError} toggle={() => setLive(!isLive)} />}
    >
      <Loaded query={query}>
        {({ processes, queues }) => (
          <Stack gap="lg">
            <SimpleGrid cols={{ base: 1, xs: 2, lg: 3 }}>
              {queues.map((queue) => <Queue key={`${queue.workload} ${queue.pool}`} of={queue} />)}
            </SimpleGrid>
            <Card title="Processes">
              {processes.length === 0
                ? (
                  <Empty icon={<LayersIcon width={22} height={22} />} title="Nobody answers">
                    No ingress and no worker is connected to NATS.
                  </Empty>
                )
                : <Processes of={processes} />}
            </Card>
          </Stack>
        )}
      </Loaded>
    </Page>
  )
}
