import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.data.Stat;

/**
 * A member of an election as Curator's users write it.
 *
 * <pre>java Peer latch|selector ADDRESS PATH ID SESSION_MS LOG</pre>
 *
 * Commands come as lines on standard input, and each is answered with one; README.md beside this file
 * says which. Ends with its input.
 */
public final class Peer {
    private static final int POLL_MS = 2;

    private Peer() {}

    public static void main(String[] args) throws Exception {
        String recipe = args[0];
        String path = args[2];
        String id = args[3];
        int sessionMs = Integer.parseInt(args[4]);
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(args[1], sessionMs, sessionMs, new RetryForever(50));
        client.start();
        client.blockUntilConnected();
        Work work = new Work(args[5], id);
        Member member = null;
        say("ready");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String command = commands.readLine(); command != null; command = commands.readLine()) {
            switch (command) {
                case "join":
                    member = recipe.equals("latch")
                            ? new LatchMember(client, path, id, work)
                            : new SelectorMember(client, path, id, work);
                    say("joined " + awaitNode(client, path, id));
                    break;
                case "resign":
                    member.resign();
                    while (nodeOf(client, path, id) != null) Thread.sleep(POLL_MS);
                    say("resigned");
                    break;
                case "contenders":
                    say("contenders " + contendersOf(member));
                    break;
                default:
                    say("unknown " + command);
            }
        }
        // Without a word to the server: the session runs out, as when it is killed.
        Runtime.getRuntime().halt(0);
    }

    private static String contendersOf(Member member) throws Exception {
        for (;;) {
            try {
                String ids =
                        member.participants().stream().map(Participant::getId).collect(Collectors.joining(","));
                String leader = member.leader().getId();
                return (leader.isEmpty() ? "-" : leader) + " " + ids;
            } catch (KeeperException onTheWay) {
                // To another session.
                Thread.sleep(POLL_MS);
            }
        }
    }

    /** One write: several threads speak. */
    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    /** When the place was taken, by ZooKeeper's own count. */
    static long tokenOf(CuratorFramework client, String node) throws Exception {
        Stat stat = client.checkExists().forPath(node);
        if (stat == null) throw new KeeperException.NoNodeException(node);
        return stat.getCzxid();
    }

    private static String awaitNode(CuratorFramework client, String path, String id) throws Exception {
        for (;;) {
            String node = nodeOf(client, path, id);
            if (node != null) return node.substring(path.length() + 1);
            Thread.sleep(POLL_MS);
        }
    }

    /** The node whose data is the id; null when there is none. */
    static String nodeOf(CuratorFramework client, String path, String id) throws Exception {
        try {
            for (String name : client.getChildren().forPath(path)) {
                String node = path + "/" + name;
                try {
                    if (new String(client.getData().forPath(node), StandardCharsets.UTF_8).equals(id)) return node;
                } catch (KeeperException.NoNodeException gone) {
                    // Another one has just left.
                }
            }
        } catch (KeeperException.NoNodeException missing) {
            // Nobody has ever joined.
        }
        return null;
    }
}
