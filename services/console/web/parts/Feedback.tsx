/** What a page shows while it has nothing to show: that it waits, that it failed, or that there is nothing yet. */
import { Alert, Button, Group, Skeleton, Stack, Text, ThemeIcon, Title } from "@mantine/core"
import { ExclamationTriangleIcon } from "@radix-ui/react-icons"
import type { ReactNode } from "react"
import { messageOf } from "../data/Client.ts"

export const Failure = ({ error, retry }: { readonly error: unknown; readonly retry: () => unknown }) => (
  <Alert color="red" icon={<ExclamationTriangleIcon />} title="This could not be loaded" my="md">
    <Group justify="space-between" gap="md">
      <Text size="sm">{messageOf(error)}</Text>
      <Button
        size="xs"
        variant="default"
        onClick={() =>
          void retry()}
      >
        Try again
      </Button>
    </Group>
  </Alert>
)

export const Waiting = ({ rows = 4 }: { readonly rows?: number }) => (
  <Stack gap="sm" aria-busy="true" aria-label="Loading">
    {Array.from({ length: rows }, (_, row) => <Skeleton key={row} height={52} radius="md" />)}
  </Stack>
)

export const Empty = ({ action, children, icon, title }: {
  readonly icon: ReactNode
  readonly title: string
  readonly children: ReactNode
  readonly action?: ReactNode
}) => (
  <Stack align="center" gap="sm" py={56} px="md" ta="center">
    <ThemeIcon size={52} radius="xl" variant="light" aria-hidden>{icon}</ThemeIcon>
    <Title order={2} size="h4" mt={4}>{title}</Title>
    <Text c="dimmed" maw={440}>{children}</Text>
    {action === undefined ? null : <div>{action}</div>}
  </Stack>
)

/** One of the three, or what is made of the data. */
export function Loaded<A>({ children, query, rows }: {
  readonly query: {
    readonly data: A | undefined
    readonly error: unknown
    readonly refetch: () => unknown
  }
  readonly rows?: number
  readonly children: (data: A) => ReactNode
}) {
  if (query.data !== undefined) return children(query.data)
  if (query.error !== null) return <Failure error={query.error} retry={query.refetch} />
  return <Waiting {...(rows === undefined ? {} : { rows })} />
}
