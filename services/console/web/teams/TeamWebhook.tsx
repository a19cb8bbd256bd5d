/** The webhook of a team, for events about its budget: the URL, the secret and the deliveries. */
import { Button, Group, Stack, Text, TextInput } from "@mantine/core"
import { useForm } from "@mantine/form"
import type { TeamView } from "../../api/Teams.ts"
import { moment } from "../data/Format.ts"
import {
  useMay,
  useRemoveTeamWebhook,
  useRotateTeamWebhook,
  useSetTeamWebhook,
  useTeamWebhook
} from "../data/Queries.ts"
import { Loaded } from "../parts/Feedback.tsx"
import { Secret } from "../parts/Secret.tsx"
import { TeamDeliveries } from "./TeamDeliveries.tsx"

type Webhook = NonNullable<ReturnType<typeof useTeamWebhook>["data"]>["webhook"]

const Form = ({ team: { id }, webhook }: { readonly team: TeamView; readonly webhook: Webhook }) => {
  const [set, rotate, remove] = [useSetTeamWebhook(), useRotateTeamWebhook(), useRemoveTeamWebhook()]
  const form = useForm({ initialValues: { url: webhook?.url ?? "" } })
  const secret = rotate.data?.secret ?? set.data?.secret ?? null
  const forget = () =>
    remove.mutate(id, {
      onSuccess: () => {
        set.reset()
        rotate.reset()
        form.setValues({ url: "" })
      }
    })
  const until = webhook?.formerSecretUntil ?? null
  return (
    <form onSubmit={form.onSubmit(({ url }) => set.mutate({ id, url: url.trim() }))}>
      <Stack gap="md">
        <TextInput
          label="URL"
          description="Gets a signed event at 50, 80 and 100 % of the team's monthly budget"
          placeholder="https://example.com/budgets"
          type="url"
          required
          data-autofocus
          {...form.getInputProps("url")}
        />
        {secret === null ? null : (
          <Secret copy="Copy secret" value={secret}>
            The receiver verifies events with this secret. Copy it now: it cannot be shown again.
          </Secret>
        )}
        {until === null
          ? null
          : <Text size="sm" c="dimmed">{`The previous secret also signs events until ${moment(until)}.`}</Text>}
        <Group justify="flex-end">
          {webhook === null ? null : (
            <>
              <Button color="red" variant="light" loading={remove.isPending} onClick={forget}>
                Remove
              </Button>
              <Button variant="default" loading={rotate.isPending} onClick={() => rotate.mutate(id)}>
                New secret
              </Button>
            </>
          )}
          <Button type="submit" loading={set.isPending}>Save</Button>
        </Group>
      </Stack>
    </form>
  )
}

export const TeamWebhook = ({ of }: { readonly of: TeamView }) => {
  const may = useMay()
  return (
    <Loaded query={useTeamWebhook(of.id)}>
      {({ webhook }) => (
        <Stack gap="lg">
          {may("teamWebhooks", "set") ?
            <Form team={of} webhook={webhook} /> :
            <Text style={{ overflowWrap: "anywhere" }}>{webhook?.url ?? "The team has no webhook."}</Text>}
          {webhook === null ? null : <TeamDeliveries of={of} />}
        </Stack>
      )}
    </Loaded>
  )
}
