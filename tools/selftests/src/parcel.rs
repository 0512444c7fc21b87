// SPDX-License-Identifier: GPL-2.0
//! Descriptors sent over a UNIX socket.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Sends one descriptor.
pub fn send(socket: impl AsFd, end: impl AsFd) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut parcel = SendAncillaryBuffer::new(&mut space);
    let ends = [end.as_fd()];
    assert!(parcel.push(SendAncillaryMessage::ScmRights(&ends)));
    sendmsg(
        socket,
        &[IoSlice::new(b"!")],
        &mut parcel,
        SendFlags::empty(),
    )
    .expect("sendmsg");
}

/// Receives one descriptor.
pub fn receive(socket: impl AsFd) -> OwnedFd {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut parcel = RecvAncillaryBuffer::new(&mut space);
    recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut [0])],
        &mut parcel,
        RecvFlags::empty(),
    )
    .expect("recvmsg");
    let mut ends = parcel.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut ends) => ends.next(),
        _ => None,
    });
    ends.next().expect("a descriptor")
}
