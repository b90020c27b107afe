package dev.nereid.scheduler;

import dev.nereid.scheduler.rate.RateLimiter;
import dev.nereid.scheduler.rate.Ticket;
import java.util.ArrayList;
import java.util.List;

/** Makes the instances of a model known to the rate limiter. Static functions only. */
final class InstanceTickets {
    private InstanceTickets() {}

    /**
     * Returns a ticket for each instance, or none at all.
     *
     * @throws dev.nereid.api.InferenceException as {@link RateLimiter#register} throws it; no instance is known then
     */
    static List<Ticket> of(List<InstanceSlot> instances, RateLimiter limiter) {
        List<Ticket> tickets = new ArrayList<>();
        try {
            for (InstanceSlot slot : instances) {
                tickets.add(limiter.register(slot.device(), slot.rate()));
            }
            return tickets;
        } catch (RuntimeException | Error e) {
            tickets.forEach(Ticket::close);
            throw e;
        }
    }
}
