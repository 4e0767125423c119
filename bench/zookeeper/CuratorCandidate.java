import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.retry.RetryOneTime;

/** The process of Curator's LeaderLatch: CandidateMethods of ../src/elections-zookeeper/messages.ts. */
public final class CuratorCandidate {
  private static CuratorFramework client;
  private static LeaderLatch latch;

  public static void main(String[] args) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String id = field(line, "id");
      try {
        switch (field(line, "method")) {
          case "open" -> open(id, field(line, "port"), field(line, "sessionTimeoutMs"));
          case "campaign" -> campaign(id, field(line, "election"));
          case "resign" -> resign(id);
          default -> throw new IllegalArgumentException(line);
        }
      } catch (Exception error) {
        print("{\"id\":" + id + ",\"error\":\"" + error.getClass().getName() + "\"}");
      }
    }
    System.exit(0);
  }

  private static void open(String id, String port, String sessionTimeoutMs) throws Exception {
    client =
        CuratorFrameworkFactory.newClient(
            "127.0.0.1:" + port, Integer.parseInt(sessionTimeoutMs), 15_000, new RetryOneTime(100));
    client.start();
    client.blockUntilConnected();
    print("{\"id\":" + id + ",\"result\":null}");
  }

  private static void campaign(String id, String election) throws Exception {
    latch = new LeaderLatch(client, "/bench-curator/" + election, "bench");
    latch.addListener(
        new LeaderLatchListener() {
          @Override
          public void isLeader() {
            answer(id, System.nanoTime());
          }

          @Override
          public void notLeader() {}
        });
    latch.start();
  }

  private static void resign(String id) throws Exception {
    long at = System.nanoTime();
    latch.close();
    answer(id, at);
  }

  /** On Linux nanoTime is the clock that all processes of a machine share. */
  private static void answer(String id, long nanos) {
    print("{\"id\":" + id + ",\"result\":{\"atMs\":" + nanos / 1e6 + ",\"token\":null}}");
  }

  private static synchronized void print(String line) {
    System.out.println(line);
    System.out.flush();
  }

  /** The lines that we are sent are flat, but for `params`. */
  private static String field(String line, String name) {
    Matcher found = Pattern.compile("\"" + name + "\":\"?([^\",}]*)").matcher(line);
    if (!found.find()) throw new IllegalArgumentException(name);
    return found.group(1);
  }
}
