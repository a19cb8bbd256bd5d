/** Details of one span. */
import { Anchor, Badge, Box, Group, SimpleGrid, Stack, Text, Title } from "@mantine/core"
import type { ReactNode } from "react"
import { Link } from "wouter"
import { exact } from "../data/Format.ts"
import { requestPath } from "../parts/RequestFacts.tsx"
import type { Row } from "./Rows.ts"

type Fact = readonly [name: string, value: ReactNode]

const Facts = ({ label, of }: { readonly label: string; readonly of: ReadonlyArray<Fact> }) => (
  <Stack gap={6} miw={0}>
    <Title order={4} size="h6" c="dimmed" fw={550}>{label}</Title>
    <dl className="facts">
      {of.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  </Stack>
)

const shown = (value: string | number | boolean | ReadonlyArray<string>): string =>
  typeof value === "object" ? value.join(", ") : String(value)

export const SpanDetails = ({ of, start }: { readonly of: Row; readonly start: number }) => {
  const { attributes, events, kind, links, name, service, spanId } = of.span
  const firstToken: ReadonlyArray<Fact> = of.firstChunk === undefined
    ? []
    : [["time to first token", exact(of.firstChunk - of.from)]]
  return (
    <Box component="section" aria-label="Selected span" p="md" className="trace-details">
      <Group gap="sm" mb="sm">
        <Title order={3} size="h5">{of.title}</Title>
        <Badge variant="default" tt="none" fw={500}>{kind}</Badge>
        <Text size="sm" c="dimmed" className="mono" style={{ overflowWrap: "anywhere" }}>{name}</Text>
      </Group>
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
        <Stack gap="lg">
          <Facts
            label="Time"
            of={[
              ["start", exact(of.from)],
              ["duration", exact(of.duration)],
              ...firstToken,
              ["service", service],
              ["span id", spanId]
            ]}
          />
          {events.length > 0 && (
            <Facts
              label="Events"
              of={events.map(({ at, name }, index) => [`${index + 1}. ${name}`, exact(at - start)])}
            />
          )}
          {links.length > 0 && (
            <Facts
              label="Links"
              of={links.map((link) => [
                `span ${link.spanId}`,
                link.traceId === of.span.traceId
                  ? "in this trace"
                  : <Anchor component={Link} href={requestPath(link.traceId)}>open its trace</Anchor>
              ])}
            />
          )}
        </Stack>
        <Facts
          label="Attributes"
          of={Object.entries(attributes).toSorted(([a], [b]) => a.localeCompare(b)).map(([name, value]) => [
            name,
            shown(value)
          ])}
        />
      </SimpleGrid>
    </Box>
  )
}
