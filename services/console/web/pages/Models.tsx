/** Models & Providers: what the catalogue offers, where it is sent, and how those are. */
import { Badge, Box, Group, SimpleGrid, Stack, Table, Text, Tooltip } from "@mantine/core"
import { CubeIcon } from "@radix-ui/react-icons"
import type { ModelView, ProviderView, TargetView } from "../../api/Fleet.ts"
import { count, counted, percent } from "../data/Format.ts"
import { Empty, Loaded } from "../parts/Feedback.tsx"
import { Card, Page } from "../parts/Page.tsx"
import { Workload } from "../parts/Workload.tsx"
import { useCatalogue } from "../data/Queries.ts"

/** What the workers' circuits together say of a target. */
const healthOf = (
  { circuits }: TargetView,
  isCalled: boolean
): { readonly color: string; readonly text: string } => {
  if (circuits === null) {
    return isCalled
      ? { color: "teal.6", text: "well" }
      : { color: "gray.5", text: "not called yet" }
  }
  const workers = circuits.closed + circuits.halfOpen + circuits.open
  if (circuits.open > 0) return { color: "red.6", text: `resting at ${circuits.open} of ${counted(workers, "worker")}` }
  return circuits.halfOpen > 0 ? { color: "orange.6", text: "being probed" } : { color: "teal.6", text: "well" }
}

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
        {of.priority === 0 ? null : <Text span c="dimmed">{` · fallback ${of.priority}`}</Text>}
      </Text>
    </Group>
  )
}

const Targets = ({ called, of }: { readonly of: ModelView; readonly called: ReadonlySet<string> }) => (
  <Stack gap={4}>
    {of.targets.map((target) => {
      const peers = of.targets.filter(({ priority }) => priority === target.priority)
      const total = peers.reduce((sum, { weight }) => sum + weight, 0)
      return (
        <Target
          key={`${target.provider} ${target.model}`}
          of={target}
          isCalled={called.has(target.provider)}
          share={peers.length > 1 ? target.weight / total : null}
        />
      )
    })}
  </Stack>
)

const ModelTable = ({ called, of }: {
  readonly of: ReadonlyArray<ModelView>
  /** The providers that were. */
  readonly called: ReadonlySet<string>
}) => (
  <Table.ScrollContainer minWidth={560} type="native" tabIndex={0}>
    <Table verticalSpacing="sm" aria-label="Models">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Model</Table.Th>
          <Table.Th>Kind</Table.Th>
          <Table.Th>Targets</Table.Th>
          <Table.Th>Workers</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {of.map((model) => (
          <Table.Tr key={model.name}>
            <Table.Td>
              <Text fw={600} size="sm" style={{ overflowWrap: "anywhere" }}>{model.name}</Text>
              {model.pool === "default" ? null : <Text size="xs" c="dimmed">{`pool ${model.pool}`}</Text>}
            </Table.Td>
            <Table.Td>
              <Workload name={model.workload} />
            </Table.Td>
            <Table.Td>
              <Targets of={model} called={called} />
            </Table.Td>
            <Table.Td>
              {model.workers === 0
                ? <Badge color="red" variant="light" tt="none">none</Badge>
                : <span className="numeric">{count(model.workers)}</span>}
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  </Table.ScrollContainer>
)

const Fact = ({ label, value }: { readonly label: string; readonly value: string }) => (
  <Group justify="space-between" gap="sm" wrap="nowrap" align="baseline">
    <Text size="sm" c="dimmed">{label}</Text>
    <Text size="sm" ta="right" style={{ overflowWrap: "anywhere" }}>{value}</Text>
  </Group>
)

/** `requestsPerMinute` as words. */
const words = (name: string): string => {
  const text = name.replace(/([A-Z])/g, " $1").toLowerCase()
  return text.charAt(0).toUpperCase() + text.slice(1)
}

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
        {of.protocol === "local"
          ? <Fact label="Runs" value="inside the workers" />
          : (
            <>
              <Fact label="Address" value={of.baseUrl ?? "as its package has it"} />
              <Fact label="Credentials" value={of.hasApiKey ? "from the catalogue" : "none"} />
            </>
          )}
        <Fact
          label="After a lost worker"
          value={of.redispatch === "always" ? "may be asked again" : "never asked twice"}
        />
        {Object.entries(of.limits).map(([name, value]) => (
          <Fact
            key={name}
            label={words(name)}
            value={typeof value === "number" ? count(value) : value ? "yes" : "no"}
          />
        ))}
        {calls === 0 ? null : (
          <Fact
            label="Calls"
            value={failed === 0 ? `${count(calls)}, all well` : `${count(calls)}, ${percent(failed / calls)} failed`}
          />
        )}
      </Stack>
    </Box>
  )
}

export const Models = () => (
  <Page
    title="Models & Providers"
    description="The catalogue as it is in force, with the health that the workers see."
  >
    <Loaded query={useCatalogue()}>
      {({ models, providers }) =>
        models.length === 0
          ? (
            <Box className="card">
              <Empty icon={<CubeIcon width={22} height={22} />} title="The catalogue is empty">
                Add providers and models to the catalogue's file: it is read again when it changes.
              </Empty>
            </Box>
          )
          : (
            <Stack gap="lg">
              <Card title="Models">
                <ModelTable
                  of={models}
                  called={new Set(providers.filter((provider) => callsOf(provider) > 0).map(({ name }) => name))}
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
