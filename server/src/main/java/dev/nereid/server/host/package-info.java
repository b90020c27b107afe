/**
 * Placement of instance threads on processors. The host policies come from the command line and from model
 * configurations. Starting points: {@link dev.nereid.server.host.HostPolicies}, {@link
 * dev.nereid.server.host.HostSetting}.
 */
@NullMarked
package dev.nereid.server.host;

import org.jspecify.annotations.NullMarked;
