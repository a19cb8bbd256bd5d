/** The latest events for a team's webhook, and their deliveries. */
import { Badge, Button, Group, Stack, Text } from "@mantine/core"
import type { TeamView } from "../../api/Teams.ts"
import type { DeliveryView } from "../../api/Webhooks.ts"
import { ago, moment } from "../data/Format.ts"
import { useMay, useResendToTeam, useTeamDeliveries } from "../data/Queries.ts"
import { Loaded } from "../parts/Feedback.tsx"

const colors: Record<DeliveryView["status"], string> = { pending: "gray", delivered: "teal", failed: "red" }

export const TeamDeliveries = ({ of: { id } }: { readonly of: TeamView }) => {
  const resend = useResendToTeam()
  const may = useMay()
  return (
    <Loaded query={useTeamDeliveries(id)} empty={<Text size="sm" c="dimmed">No events in the last two days.</Text>}>
      {(deliveries) => (
        <Stack component="ul" gap={0} p={0} m={0} aria-label="Deliveries">
          {deliveries.map(({ at, id: delivery, outcome, status, type }) => (
            <Group component="li" key={delivery} className="list-card" py="sm" gap="md" wrap="nowrap">
              <Badge color={colors[status]} variant="light" tt="capitalize" miw={92}>{status}</Badge>
              <Stack gap={0} flex={1} miw={0}>
                <Text size="sm" style={{ overflowWrap: "anywhere" }}>{type}</Text>
                <Text size="xs" c="dimmed" title={moment(at)}>
                  {[ago(at), ...(outcome === null ? [] : [outcome])].join(" · ")}
                </Text>
              </Stack>
              {may("teamWebhooks", "resend") && (
                <Button
                  size="xs"
                  variant="default"
                  loading={resend.isPending && resend.variables.delivery === delivery}
                  onClick={() => resend.mutate({ id, delivery })}
                >
                  Send again
                </Button>
              )}
            </Group>
          ))}
        </Stack>
      )}
    </Loaded>
  )
}
