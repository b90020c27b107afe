package dev.nereid.compatibility;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/** Clients that send one request again and again until they are stopped. Safe for use by any thread. */
final class Traffic implements AutoCloseable {
    private static final int CLIENTS = 2;
    private static final Duration PAUSE = Duration.ofMillis(5);
    private static final Duration TIMEOUT = Duration.ofSeconds(60);

    private final HttpClient client = HttpClient.newHttpClient();
    private final ScheduledExecutorService clock = Executors.newScheduledThreadPool(CLIENTS);
    private final HttpRequest request;
    private final String awaited;
    private final CountDownLatch seen = new CountDownLatch(CLIENTS);
    private final List<Queue<String>> responses = new ArrayList<>();
    private final List<Future<?>> clients = new ArrayList<>();

    /** Starts to send a body. {@link #await} waits for a response that contains a text. */
    Traffic(URI address, String body, String awaited) {
        this.awaited = awaited;
        request = HttpRequest.newBuilder(address)
                .timeout(TIMEOUT)
                .POST(BodyPublishers.ofString(body))
                .build();
        for (int i = 0; i < CLIENTS; i++) {
            Queue<String> own = new ConcurrentLinkedQueue<>();
            responses.add(own);
            clients.add(clock.scheduleWithFixedDelay(() -> send(own), 0, PAUSE.toMillis(), TimeUnit.MILLISECONDS));
        }
    }

    private void send(Queue<String> own) {
        String response = send();
        boolean isFirst = response.contains(awaited) && own.stream().noneMatch(one -> one.contains(awaited));
        own.add(response);
        if (isFirst) {
            seen.countDown();
        }
    }

    private String send() {
        try {
            HttpResponse<String> response = client.send(request, BodyHandlers.ofString());
            return response.statusCode() + " " + response.body();
        } catch (IOException e) {
            return e.toString();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return e.toString();
        }
    }

    /** Waits until each client has the response that was named. */
    boolean await() throws InterruptedException {
        return seen.await(TIMEOUT.toSeconds(), TimeUnit.SECONDS);
    }

    /** Stops, and returns the status and body of each response in their order, or the exception, of each client. */
    List<List<String>> stop() throws InterruptedException {
        clients.forEach(sending -> sending.cancel(false));
        clock.shutdown();
        if (!clock.awaitTermination(TIMEOUT.toSeconds(), TimeUnit.SECONDS)) {
            throw new AssertionError("requests without a response after " + TIMEOUT);
        }
        return responses.stream().map(List::copyOf).toList();
    }

    @Override
    public void close() {
        clock.shutdownNow();
        client.close();
    }
}
