package dev.nereid.http.connection;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.frontend.ConnectionLimiter;
import io.netty.channel.embedded.EmbeddedChannel;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Accepted connections before they have an event loop. */
class ConnectionAcceptorTest {
    private static final int MAX = 64;

    private long now;

    @Test
    void unsentMessagesAreCountedByTheirMemory() {
        ConnectionAcceptor acceptor = new ConnectionAcceptor(new ConnectionLimiter(MAX, 0), true, () -> now);
        EmbeddedChannel connection = new EmbeddedChannel();

        new EmbeddedChannel(acceptor).writeInbound(connection);

        assertThat(connection.config().getMessageSizeEstimator()).isSameAs(CapacitySizeEstimator.INSTANCE);
    }

    @Test
    void theOldestHandshakeIsEvicted() {
        ConnectionAcceptor acceptor = new ConnectionAcceptor(new ConnectionLimiter(3, 0), true, () -> now);
        EmbeddedChannel listening = new EmbeddedChannel(acceptor);
        listening.freezeTime();
        List<EmbeddedChannel> connections = accept(listening, 3);
        acceptor.connected(connections.get(0));
        assertThat(connections.get(1).close().isSuccess()).isTrue();

        List<EmbeddedChannel> others = accept(listening, 2);
        run(connections);
        listening.runPendingTasks();

        assertThat(connections).extracting(EmbeddedChannel::isOpen).containsExactly(true, false, false);
        assertThat(others).extracting(EmbeddedChannel::isOpen).containsExactly(true, true);
        assertThat(acceptor.open()).isEqualTo(3);
        assertThat(acceptor.refused()).isZero();
    }

    @Test
    void withoutAHandshakeToCloseAConnectionIsRefused() {
        ConnectionAcceptor acceptor = new ConnectionAcceptor(new ConnectionLimiter(1, 0), true, () -> now);
        EmbeddedChannel listening = new EmbeddedChannel(acceptor);
        listening.freezeTime();
        List<EmbeddedChannel> connections = accept(listening, 1);
        acceptor.connected(connections.getFirst());

        connections.addAll(accept(listening, 1));

        assertThat(connections).extracting(EmbeddedChannel::isOpen).containsExactly(true, false);
        assertThat(acceptor.refused()).isEqualTo(1);
    }

    @Test
    void nothingIsAcceptedWhileManyWaitNorForASecondAfterAnError() {
        ConnectionAcceptor acceptor = new ConnectionAcceptor(new ConnectionLimiter(MAX, 0), true, () -> now);
        EmbeddedChannel listening = new EmbeddedChannel(acceptor);
        listening.freezeTime();
        List<EmbeddedChannel> connections = accept(listening, MAX);
        assertThat(listening.config().isAutoRead()).isTrue();
        accept(listening, MAX);
        assertThat(listening.config().isAutoRead()).as("many wait").isFalse();

        listening.pipeline().fireExceptionCaught(new IOException("too many open files"));
        run(connections);
        listening.runPendingTasks();

        assertThat(listening.config().isAutoRead()).as("not a second later").isFalse();
        listening.advanceTimeBy(1, TimeUnit.SECONDS);
        listening.runScheduledPendingTasks();
        assertThat(listening.config().isAutoRead()).as("a second later").isTrue();
    }

    @Test
    void theEndOfAPauseDoesNotResumeAcceptingWhileManyWait() {
        ConnectionAcceptor acceptor = new ConnectionAcceptor(new ConnectionLimiter(MAX, 0), true, () -> now);
        EmbeddedChannel listening = new EmbeddedChannel(acceptor);
        listening.freezeTime();
        List<EmbeddedChannel> connections = accept(listening, MAX);
        listening.pipeline().fireExceptionCaught(new IOException("too many open files"));
        listening.advanceTimeBy(950, TimeUnit.MILLISECONDS);
        listening.runScheduledPendingTasks();
        accept(listening, MAX);

        listening.advanceTimeBy(50, TimeUnit.MILLISECONDS);
        listening.runScheduledPendingTasks();

        assertThat(listening.config().isAutoRead()).as("many wait").isFalse();
        run(connections);
        listening.runPendingTasks();
        assertThat(listening.config().isAutoRead()).as("none waits").isTrue();
    }

    @Test
    void aBlockedEventLoopDoesNotBlockAccepting() {
        ConnectionAcceptor acceptor = new ConnectionAcceptor(new ConnectionLimiter(MAX, 0), true, () -> now);
        EmbeddedChannel listening = new EmbeddedChannel(acceptor);
        listening.freezeTime();
        accept(listening, MAX);
        List<EmbeddedChannel> others = accept(listening, MAX);
        assertThat(listening.config().isAutoRead()).as("many wait").isFalse();

        listening.advanceTimeBy(IdleConnections.MAX_WAIT_NANOS, TimeUnit.NANOSECONDS);
        listening.runScheduledPendingTasks();

        assertThat(listening.config().isAutoRead()).as("none waits").isTrue();
        assertThat(others).extracting(EmbeddedChannel::isOpen).containsOnly(false);
    }

    private List<EmbeddedChannel> accept(EmbeddedChannel listening, int count) {
        List<EmbeddedChannel> connections = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            now++;
            EmbeddedChannel connection = new EmbeddedChannel();
            connections.add(connection);
            listening.pipeline().fireChannelRead(connection);
        }
        return connections;
    }

    private static void run(List<EmbeddedChannel> connections) {
        connections.forEach(EmbeddedChannel::runPendingTasks);
    }
}
