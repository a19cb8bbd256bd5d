/** Models & Providers: the catalogue, and the health of its targets. */
import { Badge, Box, Group, SimpleGrid, Stack, Text, Tooltip } from "@mantine/core"
import { CubeIcon } from "@radix-ui/react-icons"
import { String as Str } from "effect"
import type { DelayView, ModelView, ProviderView, TargetView } from "../../api/Fleet.ts"
import { count, counted, percent } from "../data/Format.ts"
import { type Column, DataTable } from "../parts/DataTable.tsx"
import { Empty, Loaded } from "../parts/Feedback.tsx"
import { Card, Page } from "../parts/Page.tsx"
import { Workload } from "../parts/Workload.tsx"
import { useCatalogue } from "../data/Queries.ts"

const healthy = { color: "teal.6", text: "healthy" }

/** Health of a target, from the circuit breakers of all workers. */
const healthOf = ({ circuits, isOff }: TargetView, isCalled: boolean) => {
  if (isOff) return { color: "gray.5", text: "switched off" }
  if (circuits === null) return isCalled ? healthy : { color: "gray.5", text: "not called yet" }
  const { closed, halfOpen, open } = circuits
  if (open > 0) {
    return { color: "red.6", text: `circuit open at ${open} of ${counted(closed + halfOpen + open, "worker")}` }
  }
  return halfOpen > 0 ? { color: "orange.6", text: "circuit half-open" } : healthy
}

/** What a delay means for requests, as in "all keys: no calls for 12 s after a 429 (0 tokens left), at 1 worker". */
const delayText = (
  { cause, forMs, owner, perMinute, requestsLeft, tokensLeft, waiting, workers }: DelayView
): string => {
  const whose = owner === null ? "all keys" : owner
  const left = [
    ...requestsLeft === null ? [] : [`${count(requestsLeft)} requests left`],
    ...tokensLeft === null ? [] : [`${count(tokensLeft)} tokens left`]
  ]
  const after = cause === "failures"
    ? "after failures"
    : `after a 429${left.length === 0 ? "" : ` (${left.join(", ")})`}`
  const what = forMs > 0
    ? `no calls for ${count(Math.ceil(forMs / 1_000))} s`
    : perMinute === null
    ? "few calls"
    : `${count(Math.round(perMinute))} calls a minute`
  const queue = waiting === 0 ? "" : `, ${counted(waiting, "request")} waiting`
  return `${whose}: ${what} ${after}, at ${counted(workers, "worker")}${queue}`
}

/** Maximum number of delays to show of a target. */
const mostDelays = 5

const Delays = ({ of: { delays } }: { readonly of: TargetView }) => (
  <>
    {delays.slice(0, mostDelays).map((delay) => (
      <Text key={`${delay.cause} ${delay.owner}`} size="xs" c="orange.8" pl={18} style={{ overflowWrap: "anywhere" }}>
        {delayText(delay)}
      </Text>
    ))}
    {delays.length > mostDelays
      ? <Text size="xs" c="dimmed" pl={18}>{`and ${counted(delays.length - mostDelays, "more delay")}`}</Text>
      : null}
  </>
)

const Target = ({ isCalled, of, share }: {
  readonly of: TargetView
  readonly isCalled: boolean
  readonly share: number | null
}) => {
  const health = healthOf(of, isCalled)
  return (
    <Group gap={8} wrap="nowrap" align="baseline">
      <Tooltip label={health.text}>
        <Box component="span" className="dot" bg={health.color} aria-label={health.text} role="img" tabIndex={0} />
      </Tooltip>
      <Text size="sm" style={{ overflowWrap: "anywhere" }}>
        {of.provider}
        <Text span c="dimmed">{` / ${of.model}`}</Text>
        {share === null ? null : <Text span c="dimmed">{` · ${percent(share)}`}</Text>}
        {of.isOff ? <Text span c="dimmed">{" · off"}</Text> : null}
        {of.priority === 0 ? null : <Text span c="dimmed">{` · fallback ${of.priority}`}</Text>}
      </Text>
    </Group>
  )
}

const Targets = ({ called, of }: { readonly of: ModelView; readonly called: ReadonlySet<string> }) => (
  <Stack gap={4}>
    {of.targets.map((target) => {
      const peers = of.targets.filter(({ isOff, priority }) => !isOff && priority === target.priority)
      const total = peers.reduce((sum, { weight }) => sum + weight, 0)
      return (
        <Box key={`${target.provider} ${target.model}`}>
          <Target
            of={target}
            isCalled={called.has(target.provider)}
            share={peers.length > 1 && !target.isOff ? target.weight / total : null}
          />
          <Delays of={target} />
        </Box>
      )
    })}
  </Stack>
)

/** `called` holds the providers with calls. */
const columnsOf = (called: ReadonlySet<string>): ReadonlyArray<Column<ModelView>> => [
  {
    head: "Model",
    cell: ({ name, pool }) => (
      <>
        <Text fw={600} size="sm" style={{ overflowWrap: "anywhere" }}>{name}</Text>
        {pool === "default" ? null : <Text size="xs" c="dimmed">{`pool ${pool}`}</Text>}
      </>
    )
  },
  { head: "Workload", cell: ({ workload }) => <Workload name={workload} /> },
  { head: "Targets", cell: (model) => <Targets of={model} called={called} /> },
  {
    head: "Workers",
    cell: ({ workers }) =>
      workers === 0
        ? <Badge color="red" variant="light" tt="none">none</Badge>
        : <span className="numeric">{count(workers)}</span>
  }
]

const Fact = ({ label, value }: { readonly label: string; readonly value: string }) => (
  <Group justify="space-between" gap="sm" wrap="nowrap" align="baseline">
    <Text size="sm" c="dimmed">{label}</Text>
    <Text size="sm" ta="right" style={{ overflowWrap: "anywhere" }}>{value}</Text>
  </Group>
)

/** `requestsPerMinute` as "Requests per minute". */
const words = (name: string): string => Str.capitalize(Str.camelToSnake(name).replaceAll("_", " "))

const yesOrNo = (value: boolean): string => value ? "yes" : "no"

const callsOf = ({ calls }: ProviderView): number => Object.values(calls).reduce((sum, value) => sum + value, 0)

const Provider = ({ of }: { readonly of: ProviderView }) => {
  const calls = callsOf(of)
  const failed = calls - (of.calls["success"] ?? 0)
  return (
    <Box component="section" className="card" p="md" aria-label={`Provider ${of.name}`}>
      <Group justify="space-between" mb="sm">
        <Text fw={600} style={{ overflowWrap: "anywhere" }}>{of.name}</Text>
        <Badge variant="default" tt="none" fw={500}>{of.protocol}</Badge>
      </Group>
      <Stack gap={6}>
        {of.protocol === "local" ? <Fact label="Runs" value="inside the workers" /> : (
          <>
            <Fact label="Address" value={of.baseUrl ?? "the default of its package"} />
            <Fact label="Credentials" value={of.hasApiKey ? "from the catalogue" : "none"} />
          </>
        )}
        <Fact label="Retried if a worker is lost" value={yesOrNo(of.isIdempotent)} />
        {Object.entries(of.limits).map(([name, value]) => (
          <Fact key={name} label={words(name)} value={typeof value === "number" ? count(value) : yesOrNo(value)} />
        ))}
        {calls > 0 && (
          <Fact
            label="Calls"
            value={`${count(calls)}, ${failed === 0 ? "all successful" : `${percent(failed / calls)} failed`}`}
          />
        )}
      </Stack>
    </Box>
  )
}

const noModels = (
  <Box className="card">
    <Empty icon={CubeIcon} title="The catalogue is empty">
      Add providers and models to the catalogue file. The gateway reloads the file when it changes.
    </Empty>
  </Box>
)

export const Models = () => (
  <Page
    title="Models & Providers"
    description="The active catalogue, with the health of each target as the workers see it."
  >
    <Loaded query={useCatalogue()} empty={noModels} isEmpty={({ models }) => models.length === 0}>
      {({ models, providers }) => (
        <Stack gap="lg">
          <Card title="Models">
            <DataTable
              rows={models}
              columns={columnsOf(new Set(providers.filter((one) => callsOf(one) > 0).map(({ name }) => name)))}
              keyOf={({ name }) => name}
              minWidth={560}
              verticalSpacing="sm"
              aria-label="Models"
            />
          </Card>
          <SimpleGrid cols={{ base: 1, xs: 2, lg: 3 }}>
            {providers.map((provider) => <Provider key={provider.name} of={provider} />)}
          </SimpleGrid>
        </Stack>
      )}
    </Loaded>
  </Page>
)
