/** Who changed which key, how and when. */
import { Badge, Group, Stack, Text } from "@mantine/core"
import { CounterClockwiseClockIcon } from "@radix-ui/react-icons"
import type { KeyChange } from "../../../../shared/keys/KeyChange.ts"
import { ago, moment } from "../data/Format.ts"
import { Empty, Loaded } from "../parts/Feedback.tsx"
import { useKeyChanges } from "../data/Queries.ts"

const colors: Record<KeyChange["action"], string> = {
  created: "teal",
  edited: "iris",
  disabled: "gray",
  enabled: "teal",
  revoked: "red"
}

/** What is as it is by default says nothing. */
const isTold = ([setting, value]: [string, unknown]): boolean =>
  setting !== "name" && value !== null && value !== false && JSON.stringify(value) !== `["*"]`
  && !(setting === "weight" && value === 1) && !(setting === "priorityClass" && value === "standard")

const describe = ({ action, settings = {} }: KeyChange): string =>
  Object.entries(settings)
    .filter((setting) => action === "edited" || isTold(setting))
    .map(([setting, value]) => `${setting}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" · ")

export const KeyChanges = () => (
  <Loaded query={useKeyChanges()}>
    {(changes) =>
      changes.length === 0
        ? (
          <Empty icon={<CounterClockwiseClockIcon width={22} height={22} />} title="Nothing has been changed yet">
            Every key that is created, edited, disabled or revoked is written down here, with who did it.
          </Empty>
        )
        : (
          <Stack component="ul" gap={0} p={0} m={0} aria-label="Changes of keys">
            {changes.map((change) => (
              <Group
                component="li"
                key={`${change.at.epochMilliseconds} ${change.key} ${change.action}`}
                align="flex-start"
                gap="md"
                p="md"
                wrap="nowrap"
                style={{ borderTop: "1px solid var(--console-line)", listStyle: "none" }}
              >
                <Badge color={colors[change.action]} variant="light" tt="capitalize" miw={84}>{change.action}</Badge>
                <Stack gap={2} flex={1} miw={0}>
                  <Text style={{ overflowWrap: "anywhere" }}>
                    <Text span fw={600}>{change.name}</Text>
                    <Text span c="dimmed">{` by ${change.by}`}</Text>
                  </Text>
                  <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
                    <span className="mono">{change.key}</span>
                    {describe(change) === "" ? "" : ` · ${describe(change)}`}
                  </Text>
                </Stack>
                <Text size="sm" c="dimmed" title={moment(change.at)} style={{ whiteSpace: "nowrap" }}>
                  {ago(change.at)}
                </Text>
              </Group>
            ))}
          </Stack>
        )}
  </Loaded>
)
