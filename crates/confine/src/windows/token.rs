//! Tokens, which identify a process and so decide about the objects that it may open.
#![expect(unsafe_code, reason = "calls the system")]

use std::{ffi::c_void, io, mem, ptr};

use windows_sys::Win32::{
    Foundation::{ERROR_NO_TOKEN, GetLastError, HANDLE},
    Security::{
        CreateRestrictedToken, CreateWellKnownSid, DuplicateTokenEx, GetTokenInformation,
        IsTokenRestricted, LUID_AND_ATTRIBUTES, RevertToSelf, SECURITY_MAX_SID_SIZE,
        SID_AND_ATTRIBUTES, SecurityImpersonation, SetTokenInformation, TOKEN_ADJUST_DEFAULT,
        TOKEN_ALL_ACCESS, TOKEN_GROUPS, TOKEN_INFORMATION_CLASS, TOKEN_MANDATORY_LABEL,
        TOKEN_PRIVILEGES, TOKEN_QUERY, TOKEN_USER, TokenGroups, TokenImpersonation,
        TokenIntegrityLevel, TokenPrivileges, TokenUser, WELL_KNOWN_SID_TYPE,
        WinBuiltinAdministratorsSid, WinNullSid, WinUntrustedLabelSid,
    },
    System::{
        SystemServices::{SE_GROUP_INTEGRITY, SE_GROUP_LOGON_ID},
        Threading::{
            GetCurrentProcess, GetCurrentThread, OpenProcessToken, OpenThreadToken, SetThreadToken,
        },
    },
};

use super::handles::Owned;

/// The tokens with which a worker is started.
pub(super) struct Tokens {
    /// The process's own: without a privilege, and with no name to which anything is open.
    nothing: Owned,
    /// The thread's token until it has loaded its libraries: the host's own rights.
    at_first: Owned,
}

impl Tokens {
    pub(super) fn of_nothing() -> Option<Self> {
        let own = open(TOKEN_ALL_ACCESS).ok()?;
        let (user, groups) = (Told::of(&own, TokenUser)?, Told::of(&own, TokenGroups)?);
        let privileges = Told::of(&own, TokenPrivileges)?;
        let mut names = user.as_user();
        names.extend(groups.as_groups(SE_GROUP_INTEGRITY | SE_GROUP_LOGON_ID));
        let privileges = privileges.as_privileges();
        let null = well_known(WinNullSid)?;
        let nothing = restricted(&own, &names, &privileges, &[named(&null)])?;
        // An unrestricted token may not stand in for a restricted one. Objects opened with it stay open, so it is no
        // administrator's.
        let administrators = well_known(WinBuiltinAdministratorsSid)?;
        let mut names = user.as_user();
        names.extend(groups.as_groups(SE_GROUP_INTEGRITY));
        let at_first = restricted(&own, &[named(&administrators)], &privileges, &names)?;
        Some(Self { nothing, at_first: impersonation(&at_first)? })
    }

    pub(super) fn of_process(&self) -> HANDLE {
        self.nothing.raw()
    }

    /// Makes a thread act with the host's rights.
    pub(super) fn lend(&self, thread: &Owned) -> io::Result<()> {
        let thread = thread.raw();
        // SAFETY: two handles.
        if unsafe { SetThreadToken(&raw const thread, self.at_first.raw()) } == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

/// This process's own token.
pub(super) struct Own(Owned);

impl Own {
    pub(super) fn open() -> Option<Self> {
        open(TOKEN_QUERY | TOKEN_ADJUST_DEFAULT).ok().map(Self)
    }

    /// Whether the token is restricted, to objects that are open to nobody.
    pub(super) fn is_restricted(&self) -> bool {
        // SAFETY: a handle.
        unsafe { IsTokenRestricted(self.0.raw()) != 0 }
    }

    pub(super) fn has_no_privilege(&self) -> bool {
        let told = Told::of(&self.0, TokenPrivileges);
        told.is_some_and(|told| told.as_privileges().is_empty())
    }

    /// Takes the right to write to any labelled object from the process; false if the system refuses.
    pub(super) fn trust_nothing(&self) -> bool {
        let Some(sid) = well_known(WinUntrustedLabelSid) else { return false };
        let integrity = SE_GROUP_INTEGRITY.cast_unsigned();
        let label = TOKEN_MANDATORY_LABEL {
            Label: SID_AND_ATTRIBUTES { Attributes: integrity, ..named(&sid) },
        };
        let bytes = u32::try_from(size_of::<TOKEN_MANDATORY_LABEL>() + sid.len()).unwrap_or(0);
        let what = TokenIntegrityLevel;
        // SAFETY: a structure, and a name that outlives the call.
        unsafe { SetTokenInformation(self.0.raw(), what, ptr::from_ref(&label).cast(), bytes) != 0 }
    }
}

/// Takes back the thread's lent token, if it has one; false if the thread still has it.
pub(super) fn give_back() -> bool {
    let mut token = ptr::null_mut();
    // SAFETY: a place for a handle, which is nobody else's.
    unsafe {
        if RevertToSelf() == 0 {
            return false;
        }
        let has_one = OpenThreadToken(GetCurrentThread(), TOKEN_QUERY, 1, &raw mut token) != 0;
        !has_one && GetLastError() == ERROR_NO_TOKEN
    }
}

fn open(rights: u32) -> io::Result<Owned> {
    let mut token = ptr::null_mut();
    // SAFETY: a place for a handle.
    unsafe {
        if OpenProcessToken(GetCurrentProcess(), rights, &raw mut token) == 0 {
            return Err(io::Error::last_os_error());
        }
        Owned::from_call(token)
    }
}

/// The same token in which the names of `deny` can only refuse access, without these privileges, and with access only
/// to objects that are open to one of the names of `only`.
fn restricted(
    token: &Owned,
    deny: &[SID_AND_ATTRIBUTES],
    privileges: &[LUID_AND_ATTRIBUTES],
    only: &[SID_AND_ATTRIBUTES],
) -> Option<Owned> {
    let count = |list: usize| u32::try_from(list).ok();
    let (denied, fewer, others) =
        (count(deny.len())?, count(privileges.len())?, count(only.len())?);
    let mut made = ptr::null_mut();
    // SAFETY: lists with their lengths, whose names outlive the call, and a place for a handle.
    unsafe {
        let worked = CreateRestrictedToken(
            token.raw(),
            0,
            denied,
            deny.as_ptr(),
            fewer,
            privileges.as_ptr(),
            others,
            only.as_ptr(),
            &raw mut made,
        );
        if worked == 0 { None } else { Owned::from_call(made).ok() }
    }
}

fn impersonation(token: &Owned) -> Option<Owned> {
    let mut made = ptr::null_mut();
    // SAFETY: a handle, no attributes, and a place for a handle.
    unsafe {
        let worked = DuplicateTokenEx(
            token.raw(),
            TOKEN_ALL_ACCESS,
            ptr::null(),
            SecurityImpersonation,
            TokenImpersonation,
            &raw mut made,
        );
        if worked == 0 { None } else { Owned::from_call(made).ok() }
    }
}

/// A name as an entry of a list.
fn named(sid: &[u8]) -> SID_AND_ATTRIBUTES {
    SID_AND_ATTRIBUTES { Sid: sid.as_ptr().cast_mut().cast(), Attributes: 0 }
}

fn well_known(kind: WELL_KNOWN_SID_TYPE) -> Option<Vec<u8>> {
    let mut bytes = SECURITY_MAX_SID_SIZE;
    let mut sid = vec![0; bytes as usize];
    // SAFETY: a place, and its size.
    let made = unsafe {
        CreateWellKnownSid(kind, ptr::null_mut(), sid.as_mut_ptr().cast(), &raw mut bytes)
    };
    (made != 0).then_some(sid)
}

/// Information about a token, in the system's layout.
struct Told(Vec<u64>);

impl Told {
    fn of(token: &Owned, what: TOKEN_INFORMATION_CLASS) -> Option<Self> {
        let mut bytes = 0;
        // SAFETY: queries the size, and then reads into a place of that size.
        unsafe {
            GetTokenInformation(token.raw(), what, ptr::null_mut(), 0, &raw mut bytes);
            let mut told = vec![0_u64; (bytes as usize).div_ceil(size_of::<u64>()).max(1)];
            let place: *mut c_void = told.as_mut_ptr().cast();
            let worked = GetTokenInformation(token.raw(), what, place, bytes, &raw mut bytes);
            (worked != 0).then_some(Self(told))
        }
    }

    fn as_user(&self) -> Vec<SID_AND_ATTRIBUTES> {
        // SAFETY: the system wrote this structure, and behind it the name to which it points.
        let user = unsafe { &*self.0.as_ptr().cast::<TOKEN_USER>() };
        vec![SID_AND_ATTRIBUTES { Sid: user.User.Sid, Attributes: 0 }]
    }

    /// Its groups except those with `left_out`: the label among them is no group, and the session cannot be denied.
    fn as_groups(&self, left_out: i32) -> Vec<SID_AND_ATTRIBUTES> {
        let kept = |group: &&SID_AND_ATTRIBUTES| group.Attributes & left_out.cast_unsigned() == 0;
        // SAFETY: the system wrote this structure, with as many entries as it says.
        let groups: &[SID_AND_ATTRIBUTES] = unsafe {
            let told = self.0.as_ptr().cast::<TOKEN_GROUPS>();
            let first = self.0.as_ptr().byte_add(mem::offset_of!(TOKEN_GROUPS, Groups)).cast();
            std::slice::from_raw_parts(first, (*told).GroupCount as usize)
        };
        let named =
            |group: &SID_AND_ATTRIBUTES| SID_AND_ATTRIBUTES { Sid: group.Sid, Attributes: 0 };
        groups.iter().filter(kept).map(named).collect()
    }

    fn as_privileges(&self) -> Vec<LUID_AND_ATTRIBUTES> {
        // SAFETY: the system wrote this structure, with as many entries as it says.
        unsafe {
            let told = self.0.as_ptr().cast::<TOKEN_PRIVILEGES>();
            let first = self.0.as_ptr().byte_add(mem::offset_of!(TOKEN_PRIVILEGES, Privileges));
            let count = (*told).PrivilegeCount as usize;
            std::slice::from_raw_parts(first.cast::<LUID_AND_ATTRIBUTES>(), count).to_vec()
        }
    }
}
