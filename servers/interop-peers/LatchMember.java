import java.util.Collection;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.leader.Participant;

/** LeaderLatch: leads while {@code hasLeadership()}, and is told by a listener. */
final class LatchMember implements Member {
    private final CuratorFramework client;
    private final LeaderLatch latch;
    private final Work work;

    LatchMember(CuratorFramework client, String path, String id, Work work) throws Exception {
        this.client = client;
        this.work = work;
        this.latch = new LeaderLatch(client, path, id, LeaderLatch.CloseMode.NOTIFY_LEADER);
        latch.addListener(new LeaderLatchListener() {
            @Override
            public void isLeader() {
                // The thread of the listener is the one that brings the answers.
                Thread thread = new Thread(LatchMember.this::lead);
                thread.setDaemon(true);
                thread.start();
            }

            @Override
            public void notLeader() {}
        });
        latch.start();
    }

    private void lead() {
        try {
            work.run(Peer.tokenOf(client, latch.getOurPath()), latch::hasLeadership);
        } catch (Exception error) {
            Peer.say("failed " + error);
        }
        Peer.say("ended");
    }

    @Override
    public void resign() throws Exception {
        latch.close();
    }

    @Override
    public Collection<Participant> participants() throws Exception {
        return latch.getParticipants();
    }

    @Override
    public Participant leader() throws Exception {
        return latch.getLeader();
    }
}
