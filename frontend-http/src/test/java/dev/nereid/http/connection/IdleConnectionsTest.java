package dev.nereid.http.connection;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The order of evictions. */
class IdleConnectionsTest {
    private final List<FakeConnection> connections = new ArrayList<>();
    private final List<String> closed = new ArrayList<>();
    private long now = Long.MAX_VALUE - 5; // the clock may begin anywhere
    private int searches;
    private final IdleConnections idle = new IdleConnections(connections, () -> now);

    @Test
    void theOneThatHasBeenIdleForTheLongestTimeIsClosedFirst() {
        add("young").idleAfter(10);
        add("old").idleAfter(1);
        add("busy").isEvictable = false;

        close(3);

        assertThat(closed).containsExactly("old", "young");
    }

    @Test
    void theOneThatNeverServedARequestIsClosedFirst() {
        add("old").idleAfter(1);
        add("new").idleAfter(10).hasResponded = false;

        close(2);

        assertThat(closed).containsExactly("new", "old");
    }

    @Test
    void oneInRecentUseIsSparedIfRequested() {
        add("unused").idleAfter(-3).hasResponded = false;
        long since = add("used").idleAfter(-10).since;

        idle.closeOldest(11);
        idle.closeOldest(11);
        assertThat(closed).containsExactly("unused");
        assertThat(idle.oldestSince()).as("another event loop may be preferred").isEqualTo(since);

        now++;
        idle.closeOldest(11);
        assertThat(closed).containsExactly("unused", "used");
    }

    @Test
    void oneSearchFindsSeveral() {
        Stream.iterate(0, i -> i + 1).limit(100).forEach(i -> add("c" + i).idleAfter(i));

        close(IdleConnections.CANDIDATES);
        assertThat(searches).isEqualTo(100);
        close(1);
        assertThat(searches).isEqualTo(200 - IdleConnections.CANDIDATES);

        assertThat(closed).hasSize(IdleConnections.CANDIDATES + 1).startsWith("c0", "c1", "c2");
    }

    @Test
    void aCandidateUsedMeanwhileIsSkipped() {
        add("first").idleAfter(1);
        FakeConnection used = add("used").idleAfter(2);
        FakeConnection busy = add("busy").idleAfter(3);
        FakeConnection lost = add("lost").idleAfter(4);
        add("last").idleAfter(5);
        close(1);
        used.idleAfter(6);
        busy.isEvictable = false;
        lost.isOpen = false;

        close(1);

        assertThat(closed).containsExactly("first", "last");
        close(1);
        assertThat(closed).as("another search").containsExactly("first", "last", "used");
    }

    @Test
    void withoutOneOtherEventLoopsArePreferredForAWhile() {
        add("busy").isEvictable = false;
        long before = idle.oldestSince();
        now += 1000;
        assertThat(idle.mayExist()).isTrue();

        idle.closeOldest();

        assertThat(idle.oldestSince() - before).isEqualTo(1000);
        assertThat(idle.mayExist()).isFalse();
        now += IdleConnections.SEARCH_NANOS;
        assertThat(idle.mayExist()).isTrue();
    }

    @Test
    void reportsTheOldestIdleTime() {
        long since = add("old").idleAfter(-7).since;
        add("young").idleAfter(3);

        idle.closeOldest();
        assertThat(idle.oldestSince()).isEqualTo(since);

        idle.setOldestSince(since + 1);
        assertThat(idle.oldestSince()).isEqualTo(since + 1);
    }

    @Test
    void otherEventLoopsArePreferredToABlockedOne() {
        idle.requestEviction();
        idle.requestEviction();
        now += IdleConnections.MAX_WAIT_NANOS;
        assertThat(idle.mayExist()).isTrue();
        now++;
        assertThat(idle.mayExist()).isFalse();

        idle.evictionStarted();
        assertThat(idle.mayExist()).as("it goes on").isTrue();
        assertThat(idle.isEvictionPending()).isTrue();
        idle.evictionStarted();
        now += IdleConnections.MAX_WAIT_NANOS + 1;
        assertThat(idle.mayExist()).as("nothing waits").isTrue();
        assertThat(idle.isEvictionPending()).isFalse();
    }

    private void close(int times) {
        for (int i = 0; i < times; i++) {
            idle.closeOldest();
        }
    }

    private FakeConnection add(String name) {
        FakeConnection connection = new FakeConnection(name);
        connections.add(connection);
        return connection;
    }

    private final class FakeConnection implements IdleConnections.Connection {
        private final String name;
        private boolean isOpen = true;
        private boolean isEvictable = true;
        private boolean hasResponded = true;
        private long since = now;

        FakeConnection(String name) {
            this.name = name;
        }

        FakeConnection idleAfter(long nanos) {
            since = now + nanos;
            return this;
        }

        @Override
        public boolean isOpen() {
            return isOpen;
        }

        @Override
        public boolean isEvictable() {
            return isEvictable;
        }

        @Override
        public boolean hasResponded() {
            searches++; // called once for each candidate of a search
            return hasResponded;
        }

        @Override
        public long idleSince() {
            return since;
        }

        @Override
        public void abort() {
            closed.add(name);
            isOpen = false;
            isEvictable = false;
        }
    }
}
