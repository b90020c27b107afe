package dev.nereid.attacks;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Clients that do the same at the same time. Stateless. */
final class ConcurrentClients {
    private ConcurrentClients() {}

    /** Runs an action several times concurrently, and returns the outcomes. */
    static <T> List<T> run(int count, Callable<T> client) throws Exception {
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            List<Future<T>> running = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                running.add(threads.submit(client));
            }
            List<T> all = new ArrayList<>();
            for (Future<T> each : running) {
                all.add(each.get());
            }
            return all;
        }
    }
}
