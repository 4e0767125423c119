import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.function.BooleanSupplier;

/** What a leader does: a line in the fenced log every few milliseconds, as long as it believes. */
final class Work {
    private static final long BEAT_MS = 5;

    private final FileChannel log;
    private final String id;

    Work(String path, String id) throws IOException {
        this.log = FileChannel.open(Path.of(path), StandardOpenOption.WRITE, StandardOpenOption.APPEND);
        this.id = id;
    }

    /** Returns when the leader does not believe any more. */
    void run(long token, BooleanSupplier believes) throws InterruptedException {
        Peer.say("leading " + token);
        long pid = ProcessHandle.current().pid();
        String kind = "start";
        while (believes.getAsBoolean()) {
            // CLOCK_MONOTONIC, on Linux.
            String line = token + " " + id + " " + pid + " " + pid + " " + System.nanoTime() + " " + kind + "\n";
            write(line);
            kind = "beat";
            Thread.sleep(BEAT_MS);
        }
    }

    private void write(String line) {
        try {
            // One write(2): lines are whole.
            log.write(ByteBuffer.wrap(line.getBytes(StandardCharsets.UTF_8)));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
