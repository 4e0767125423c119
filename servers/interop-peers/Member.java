import java.util.Collection;
import org.apache.curator.framework.recipes.leader.Participant;

/** One candidacy in a recipe of Curator's. */
interface Member {
    /** Its node is deleted then, or on its way to be. */
    void resign() throws Exception;

    Collection<Participant> participants() throws Exception;

    Participant leader() throws Exception;
}
