import java.util.Collection;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;

/** LeaderSelector: leads while takeLeadership runs, and that is interrupted when the connection breaks. */
final class SelectorMember extends LeaderSelectorListenerAdapter implements Member {
    private final String path;
    private final String id;
    private final LeaderSelector selector;
    private final Work work;

    SelectorMember(CuratorFramework client, String path, String id, Work work) {
        this.path = path;
        this.id = id;
        this.work = work;
        this.selector = new LeaderSelector(client, path, this);
        selector.setId(id);
        selector.autoRequeue();
        selector.start();
    }

    @Override
    public void takeLeadership(CuratorFramework client) throws Exception {
        try {
            work.run(Peer.tokenOf(client, Peer.nodeOf(client, path, id)), () -> true);
        } finally {
            Peer.say("ended");
        }
    }

    @Override
    public void resign() {
        selector.close();
    }

    @Override
    public Collection<Participant> participants() throws Exception {
        return selector.getParticipants();
    }

    @Override
    public Participant leader() throws Exception {
        return selector.getLeader();
    }
}
