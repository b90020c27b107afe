package dev.nereid.server.demand;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.server.options.DemandOptions;
import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.LeakCheckingMemory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Models of 10 bytes under a budget of 40, loaded and evicted on other threads. */
@Timeout(60)
final class DemandModelsTest {
    private static final int SIZE = 10;
    private static final int BUDGET = 40;

    private final TimerThread timer = new TimerThread(System::nanoTime);
    private final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
    private final FakeActions actions = new FakeActions();
    private final DemandModels demand = new DemandModels(
            new DemandOptions(BUDGET, Duration.ofSeconds(60), 4096, 256L << 20),
            actions,
            new SchedulerEnvironment(new LeakCheckingMemory(), System::nanoTime, timer),
            threads);

    @AfterEach
    void stop() {
        demand.close();
        threads.close();
        timer.close();
    }

    @Test
    void holdsAllModelsOfAPipeline() throws Exception {
        expect(6);

        Runnable first = get(demand.acquireAll(List.of("m0", "m1")));
        Runnable second = get(demand.acquireAll(List.of("m1", "m2", "m3")));
        CompletableFuture<Runnable> third = demand.acquireAll(List.of("m4", "m5"));

        assertThat(actions.loaded).containsOnly("m0", "m1", "m2", "m3");
        assertThat(third).isNotDone();
        first.run();
        assertThat(third).as("m0 alone is free").isNotDone();
        second.run();
        get(third).run();
        assertThat(demand.statistics().evictions()).isEqualTo(2);
    }

    @Test
    void endsAHoldThatIsCancelled() throws Exception {
        expect(5);
        Runnable all = get(demand.acquireAll(List.of("m0", "m1", "m2", "m3")));
        CompletableFuture<Runnable> cancelled = demand.acquireAll(List.of("m4"));

        cancelled.cancel(false);
        all.run();

        get(demand.acquireAll(List.of("m0"))).run();
        assertThat(actions.loaded).doesNotContain("m4");
    }

    @Test
    void refreshesTheMemoryOfModelsThatStayWhileTheBudgetIsShort() throws Exception {
        expect(5);
        for (int i = 0; i < 4; i++) {
            get(demand.acquireAll(List.of("m" + i))).run();
        }
        assertThat(actions.refreshed).isEmpty();

        get(demand.acquireAll(List.of("m4"))).run();

        assertThat(actions.refreshed).contains("m1", "m2", "m3");
    }

    @Test
    void evictsOthersForAModelThatHasGrown() throws Exception {
        expect(4);
        for (int i = 0; i < 4; i++) {
            get(demand.acquireAll(List.of("m" + i))).run();
        }

        demand.resized("m3", SIZE, SIZE + 1);

        get(demand.acquireAll(List.of("m1", "m2", "m3"))).run();
        assertThat(demand.statistics().memory()).containsEntry("m3", SIZE + 1L);
        while (demand.statistics().evictions() < 1) {
            Thread.onSpinWait();
        }
        assertThat(demand.statistics().memory()).containsEntry("m3", SIZE + 1L);
    }

    @Test
    void failsAPipelineWithTheFailureOfAModel() {
        expect(2);
        actions.broken.add("m1");

        assertThatThrownBy(() -> get(demand.acquireAll(List.of("m0", "m1"))))
                .cause()
                .isInstanceOf(InferenceException.class)
                .hasMessageStartingWith("model 'm1' could not be loaded: broken");
        assertThatThrownBy(() -> get(demand.acquireAll(List.of("m1"))))
                .cause()
                .hasMessageStartingWith("model 'm1' could not be loaded: broken");
        assertThat(actions.loads).as("not tried again at once").hasValue(2);
    }

    @Test
    void triesAgainForAClient() throws Exception {
        expect(1);
        actions.broken.add("m0");
        assertThatThrownBy(() -> get(demand.acquireAll(List.of("m0")))).hasMessageContaining("broken");
        actions.broken.clear();

        get(demand.hold("m0").toCompletableFuture()).run();

        assertThat(actions.loaded).containsOnly("m0");
    }

    /** Pipelines of several models from many threads: all complete, and what is held is loaded. */
    @Test
    void neverBlocksPipelinesForEver() throws Exception {
        expect(9);
        AtomicInteger failures = new AtomicInteger();
        List<Future<?>> clients = new ArrayList<>();
        for (int i = 0; i < 16; i++) {
            clients.add(threads.submit(() -> {
                for (int round = 0; round < 100; round++) {
                    List<String> models = ThreadLocalRandom.current()
                            .ints(0, 9)
                            .distinct()
                            .limit(1 + ThreadLocalRandom.current().nextInt(4))
                            .mapToObj(model -> "m" + model)
                            .toList();
                    Runnable hold = get(demand.acquireAll(models));
                    if (!actions.loaded.containsAll(models)
                            || demand.statistics().memory().values().stream()
                                            .mapToLong(Long::longValue)
                                            .sum()
                                    > BUDGET) {
                        failures.incrementAndGet();
                    }
                    hold.run();
                }
                return null;
            }));
        }
        for (Future<?> client : clients) {
            client.get(50, TimeUnit.SECONDS);
        }
        assertThat(failures).hasValue(0);
        assertThat(actions.wrong).hasValue(0);
    }

    private void expect(int models) {
        for (int i = 0; i < models; i++) {
            demand.expect("m" + i, SIZE, false);
        }
    }

    private static Runnable get(CompletableFuture<Runnable> hold)
            throws ExecutionException, InterruptedException, java.util.concurrent.TimeoutException {
        return hold.get(30, TimeUnit.SECONDS);
    }

    /** Loads and evicts at once, on other threads, and reports as the control tasks of a server do. */
    private final class FakeActions implements ModelActions {
        private final Set<String> loaded = ConcurrentHashMap.newKeySet();
        private final Set<String> broken = ConcurrentHashMap.newKeySet();
        private final Map<String, Long> used = new ConcurrentHashMap<>();
        private final AtomicInteger loads = new AtomicInteger();
        private final AtomicInteger wrong = new AtomicInteger();

        private final Set<String> refreshed = ConcurrentHashMap.newKeySet();

        @Override
        public void refreshMemory(String model) {
            refreshed.add(model);
        }

        @Override
        public CompletionStage<Void> load(String model) {
            loads.incrementAndGet();
            CompletableFuture<Void> outcome = new CompletableFuture<>();
            threads.execute(() -> {
                if (broken.contains(model)) {
                    outcome.completeExceptionally(new InferenceException(ErrorCode.INTERNAL, "broken"));
                    return;
                }
                demand.begun(model, SIZE);
                used.put(model, System.nanoTime());
                wrong.addAndGet(loaded.add(model) ? 0 : 1);
                demand.loaded(model, SIZE, false);
                outcome.complete(null);
            });
            return outcome;
        }

        @Override
        public CompletionStage<Boolean> evict(String model) {
            CompletableFuture<Boolean> outcome = new CompletableFuture<>();
            threads.execute(() -> {
                wrong.addAndGet(loaded.remove(model) ? 0 : 1);
                outcome.complete(true);
                demand.closed(model, SIZE);
            });
            return outcome;
        }

        @Override
        public List<ModelActions.ModelUse> uses() {
            return loaded.stream()
                    .map(model -> new ModelActions.ModelUse(model, used.get(model), true))
                    .toList();
        }
    }
}
